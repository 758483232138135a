// run_jobs(): commands that start many processes, several at once, and how long those live on.
#pragma once

#include "accrue/tests/tools/processes.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace accrue::test {

struct Outcome {
  int code = -1;
  std::string output = {};  ///< of stdout and stderr
  double seconds_left = 0;  ///< in which processes of the job lived on after it had ended
};

/// Runs a shell command in the folder of the programs. Any thread may call this, so nothing of it
/// checks.
inline Outcome run_job(const std::string& command) {
  using Clock = std::chrono::steady_clock;
  static std::atomic<int> number = 0;
  const std::string mark =
      "ACCRUE_TEST_JOB=" + std::to_string(getpid()) + "." + std::to_string(number++);
  const std::string line = "cd " ACCRUE_PROGRAMS " && " + mark + " " + command + " 2>&1";
  Outcome outcome;
  std::FILE* const pipe = popen(line.c_str(), "r");
  if (!pipe) return outcome;
  char buffer[4096];
  while (const std::size_t length = std::fread(buffer, 1, sizeof buffer, pipe))
    outcome.output.append(buffer, length);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  const Clock::time_point end = Clock::now();
  while (count_processes_with(mark) > 0 && outcome.seconds_left < 10) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    outcome.seconds_left = std::chrono::duration<double>(Clock::now() - end).count();
  }
  return outcome;
}

/// Jobs spend most of their time waiting, so eight run at once.
inline std::vector<Outcome> run_jobs(const std::vector<std::string>& commands) {
  std::vector<Outcome> outcomes(commands.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = 0; (i = next++) < commands.size();) outcomes[i] = run_job(commands[i]);
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < 8; ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  return outcomes;
}

}  // namespace accrue::test
