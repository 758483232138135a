// The frame of every program: exit codes, and what becomes of exceptions and failed output.
#pragma once

#include <string>

namespace accrue::bench {

/// How a program ends. One more is free for the shell: ctest reads 77 as skipped.
enum ExitCode : int {
  kDone = 0,
  kClaimFailed = 1,  ///< bits differ, a figure was missed
  kUsage = 64,
  kMissingInput = 66,
  kInternal = 70,
  kOutOfMemory = 71,
  kCannotCreate = 73,
  kInputOutput = 74,
  kRankLost = 75,       ///< a rank died, stopped or was interrupted: start again
  kRanksDisagree = 76,  ///< ranks called different collectives or hold different models
  kConfiguration = 78,
};

/// Ends the program from anywhere below run_program(): `message` goes to stderr as one line.
struct ProgramEnd {
  ExitCode code;
  std::string message;
};

/// Runs `body` and returns the exit code: its result, or the code of what it threw.
///
/// Whatever is written to stdout has arrived when this returns 0: a full disk or a closed stdout
/// gives kInputOutput. ValueError is a configuration that does not work, MismatchError ranks that
/// disagree, any other DistributedError a rank lost; the library's other errors are internal. Every
/// failure prints one line on stderr.
int run_program(int (*body)(int argc, char** argv), int argc, char** argv);

/// Starts the program again with `name` set to `value` in its environment, or without it if `value`
/// is null, unless that is so already. For what libraries read while they are loaded.
void require_environment(char** argv, const char* name, const char* value);

}  // namespace accrue::bench
