// run() and shell(): a program as a user starts it, and what it printed.
#pragma once

#include "accrue/tests/support/doctest.h"

#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace accrue::test {

struct Run {
  int code = 0;
  std::string output = {};
};

/// Runs a shell command in the folder of the programs.
inline Run shell(const std::string& command) {
  std::FILE* pipe = popen(("cd " ACCRUE_PROGRAMS " && " + command).c_str(), "r");
  REQUIRE(pipe);
  Run result;
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) {
    result.output.append(buffer, count);
  }
  const int status = pclose(pipe);
  REQUIRE(WIFEXITED(status));
  result.code = WEXITSTATUS(status);
  return result;
}

/// Runs a program of that folder.
inline Run run(const std::string& command) { return shell("./" + command); }

/// How often `part` occurs.
inline int count(const std::string& text, const std::string& part) {
  int number = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++number;
  }
  return number;
}

}  // namespace accrue::test
