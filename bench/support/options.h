// Options: the command line of a program.
#pragma once

#include "accrue/core/device.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace accrue::bench {

/// Declares options, then reads them. Each variable keeps its value when its option is not given.
///
/// `--name value` and `--name=value` are the same. Values are whole: `1e3`, `1,5`, `0x10` and `+1`
/// are no integers. An option may be given once.
/// Lifetime: borrows the variables until parse() returns.
class Options {
 public:
  explicit Options(const std::string& description);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  /// An option without value.
  void flag(const std::string& name, bool& value, const std::string& help);
  /// An integer in [min, max]. --help shows `value` as the default unless it lies below `min`.
  void integer(const std::string& name,
               std::int64_t& value,
               const std::string& help,
               std::int64_t min = 1,
               std::int64_t max = std::numeric_limits<std::int32_t>::max());
  /// One of `choices`; `value` becomes its index.
  void choice(const std::string& name,
              std::size_t& value,
              const std::vector<std::string>& choices,
              const std::string& help);
  /// --device: the CPU, or a CUDA device. Where there is none, parse() says so on stderr, once, and
  /// `value` is the CPU.
  void device(Device& value);
  /// Any text; --help shows `placeholder` for it.
  void word(const std::string& name,
            std::string& value,
            const std::string& placeholder,
            const std::string& help);
  /// The name of a file.
  void file(const std::string& name, std::string& value, const std::string& help);

  /// Errors: ProgramEnd with kUsage naming the option, or with kDone after --help was printed.
  void parse(int argc, char** argv);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace accrue::bench
