// rank: the parent of one process of a job. When that is killed, it gives the others time to say
// so.
#include "accrue/bench/support/program.h"
#include "accrue/core/error.h"
#include "accrue/tools/children.h"
#include "accrue/tools/commands.h"
#include "accrue/tools/job.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace accrue::tools {
namespace {

/// mpirun kills a job as soon as one of its processes ends badly. Ranks see within this time that
/// another is gone, name it and end.
constexpr std::chrono::seconds kLastWords(1);
/// A rank that fails waits until the others have noticed and end with kRankLost. Its code must come
/// first, since it tells more.
constexpr std::chrono::milliseconds kAfterCause(300);

[[noreturn]] void become(char** command) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) std::signal(signal, SIG_DFL);  // NOLINT
  execv(command[0], command);
  std::fprintf(stderr, "accrue: cannot start %s: %s\n", command[0], std::strerror(errno));
  _exit(bench::kMissingInput);
}

/// Waits until `process` has ended, which stays a zombie. Others that end meanwhile are orphans.
siginfo_t end_of(pid_t process) {
  siginfo_t info = {};
  while (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) != 0 || info.si_pid != process) {
    if (info.si_pid > 0) waitpid(info.si_pid, nullptr, WNOHANG);
  }
  return info;
}

/// Signals to all ranks are not a rank's own death.
bool is_killed(const siginfo_t& end) {
  return end.si_code != CLD_EXITED && end.si_status != SIGTERM && end.si_status != SIGINT;
}

void print_death(int signal) {
  const char* const number = std::getenv("OMPI_COMM_WORLD_RANK");
  std::fprintf(stderr,
               "accrue: rank %s was killed by signal %d (%s)\n",
               number ? number : "?",
               signal,
               strsignal(signal));
}

}  // namespace

int rank(int argc, char** argv) {
  if (argc < 3)
    throw bench::ProgramEnd{bench::kUsage, "accrue launch starts this, give it a program"};
  const pid_t launcher = std::atoi(argv[1]);
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_IGN);  // NOLINT
  adopt_orphans();
  const pid_t process = fork();
  if (process == -1) {
    throw bench::ProgramEnd{bench::kOutOfMemory, text("cannot fork: ", std::strerror(errno))};
  }
  if (process == 0) become(argv + 2);
  const siginfo_t end = end_of(process);
  const int code = end.si_code == CLD_EXITED ? end.si_status : bench::kRankLost;
  const auto report = [&] {
    if (code != bench::kDone && launcher > 0) report_failure(launcher, code);
  };
  // Others see that the process is gone when it is no zombie any more, so the cause comes first.
  const bool is_cause = is_killed(end) || code != bench::kRankLost;
  if (is_cause) report();
  waitpid(process, nullptr, 0);
  if (is_killed(end)) {
    print_death(end.si_status);
    std::this_thread::sleep_for(kLastWords);
  }
  if (!is_cause) {
    std::this_thread::sleep_for(kAfterCause);
    report();
  }
  kill_children();  // mpirun waits for all that could still print
  return code;
}

}  // namespace accrue::tools
