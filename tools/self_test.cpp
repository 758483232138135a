// test: trains on 1 and on N processes and compares the bits.
#include "accrue/bench/support/program.h"
#include "accrue/core/error.h"
#include "accrue/tools/commands.h"
#include "accrue/tools/job.h"
#include "accrue/tools/mpirun.h"
#include "accrue/tools/training_check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace accrue::tools {
namespace {

struct Finished {
  int code = 0;
  std::vector<std::string> lines;  ///< of stdout
};

Finished run_and_read(const JobRequest& request) {
  const std::vector<std::string> command = mpirun_command(request);
  std::FILE* const file = std::tmpfile();
  const int standard_output = dup(STDOUT_FILENO);
  if (!file || standard_output == -1) {
    throw bench::ProgramEnd{bench::kCannotCreate, "cannot open a temporary file"};
  }
  std::fflush(stdout);
  dup2(fileno(file), STDOUT_FILENO);
  Finished result;
  result.code = run_job(command);
  dup2(standard_output, STDOUT_FILENO);
  close(standard_output);
  std::rewind(file);
  for (char line[256]; std::fgets(line, sizeof line, file);) {
    result.lines.emplace_back(line);
    result.lines.back().pop_back();  // the end of the line
  }
  std::fclose(file);
  return result;
}

/// Prints a line per case and returns the number of those without the expected bits, which the
/// first case of all sets.
int count_failures(const Settings& settings, std::string& expected) {
  const std::int64_t processes = settings.num_processes;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const Finished job =
      run_and_read({.settings = settings, .program = {self, "train", std::to_string(processes)}});
  const std::vector<std::int64_t> sizes = micro_batch_sizes(processes);
  int failures = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::string bits = i < job.lines.size() ? job.lines[i] : "none";
    if (expected.empty()) expected = bits;
    const bool is_right = bits == expected && bits != "none";
    failures += !is_right;
    fmt::print("{:>4} processes, micro-batches of {:>2}: {:16} {}\n",
               processes,
               sizes[i],
               bits,
               is_right ? "ok" : "WRONG");
  }
  if (job.code != bench::kDone) fmt::print("the job ended with exit code {}\n", job.code);
  return failures + (job.code != bench::kDone);
}

}  // namespace

int train(int argc, char** argv) {
  if (argc != 2) throw bench::ProgramEnd{bench::kUsage, "accrue test starts this"};
  train_and_print(std::atoi(argv[1]));
  return bench::kDone;
}

int self_test(int argc, char** argv) {
  bench::Options options(
      "Trains a small model on 1 process and on several and compares the bits of every step.");
  Settings settings;
  std::string config_file;
  add_options(options, settings, config_file);
  options.parse(argc, argv);
  if (!config_file.empty()) read_settings(config_file, settings);
  check(settings);
  if (settings.num_processes < 0) settings.num_processes = 2;
  if (settings.num_processes > kLanes) {
    throw bench::ProgramEnd{
        bench::kConfiguration,
        text("the test can train on at most ", kLanes, " processes, got ", settings.num_processes)};
  }

  std::string expected;
  Settings alone;
  alone.num_processes = 1;
  int failures = count_failures(alone, expected);
  if (settings.num_processes > 1) failures += count_failures(settings, expected);
  fmt::print("{}\n", failures == 0 ? "the same bits everywhere" : "NOT the same bits everywhere");
  return failures == 0 ? bench::kDone : bench::kClaimFailed;
}

}  // namespace accrue::tools
