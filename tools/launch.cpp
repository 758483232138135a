// launch: starts a program on several processes through mpirun and returns its exit code.
#include "accrue/bench/support/program.h"
#include "accrue/core/error.h"
#include "accrue/tools/commands.h"
#include "accrue/tools/job.h"
#include "accrue/tools/mpirun.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace accrue::tools {
namespace {

/// --num-processes is --num_processes, as in Accelerate.
std::string with_underscores(std::string word) {
  if (!word.starts_with("--")) return word;
  const auto length = static_cast<std::ptrdiff_t>(std::min(word.find('='), word.size()));
  std::replace(word.begin() + 2, word.begin() + length, '-', '_');
  return word;
}

/// Parses what stands before the program and returns the rest. Options are `--name value`,
/// `--name=value` and flags; `--` may end them.
std::vector<std::string> parse_before_program(bench::Options& options, int argc, char** argv) {
  constexpr std::array<std::string_view, 4> kFlags{"--cpu", "--label", "--help", "-h"};
  std::vector<std::string> before{argv[0]};
  int i = 1;
  while (i < argc && argv[i][0] == '-') {
    const std::string word = with_underscores(argv[i++]);
    if (word == "--") break;
    before.push_back(word);
    const bool is_alone = word.find('=') != std::string::npos ||
                          std::find(kFlags.begin(), kFlags.end(), word) != kFlags.end();
    if (!is_alone && i < argc) before.emplace_back(argv[i++]);
  }
  std::vector<char*> words;
  for (std::string& word : before) words.push_back(word.data());
  options.parse(static_cast<int>(words.size()), words.data());
  return {argv + i, argv + argc};
}

}  // namespace

int launch(int argc, char** argv) {
  bench::Options options(
      "Starts a program on several processes: accrue launch [OPTIONS] PROGRAM [ARGUMENTS].\n"
      "Exit codes: the program's; 74 stdout takes no more, which ends the job; 75 a rank "
      "died or stopped, 76 ranks disagree, 78 a configuration that cannot work.");
  JobRequest request;
  std::string config_file;
  add_options(options, request.settings, config_file);
  options.flag("cpu", request.cpu, "train on the CPU where the program names no device");
  options.flag("label", request.label, "begin each line of output with its rank");
  request.program = parse_before_program(options, argc, argv);
  if (request.program.empty()) {
    throw bench::ProgramEnd{bench::kUsage, "launch needs a program; --help lists the options"};
  }
  if (!config_file.empty()) read_settings(config_file, request.settings);
  check(request.settings);
  return run_job(mpirun_command(request));
}

}  // namespace accrue::tools
