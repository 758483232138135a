// Child: a process that answers lines on its stdin with lines on its stdout.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace accrue::bench {

/// Ends with its stdin: the destructor closes that and waits.
class Child {
 public:
  /// The program is looked up in PATH. Errors: ProgramEnd with kInternal when it cannot start.
  explicit Child(std::vector<std::string> command);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Empty when the child has ended.
  std::string read_line();
  /// Sends a line, reads one. Errors: ProgramEnd with kInternal when the child has ended.
  std::string ask(const std::string& line);

 private:
  pid_t process_ = 0;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
  std::string name_;
};

}  // namespace accrue::bench
