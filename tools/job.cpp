#include "accrue/tools/job.h"

#include "accrue/bench/support/program.h"
#include "accrue/core/error.h"
#include "accrue/tools/children.h"
#include "accrue/tools/output.h"

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace accrue::tools {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// What a job may take to end after a rank failed: others may speak for a second, then mpirun asks
/// them to end, and kills after another.
constexpr std::chrono::seconds kEndOfJob(4);
/// Schedulers send the same signal to a process and to its group.
constexpr std::chrono::seconds kSameSignal(1);

/// Ranks are what mpirun starts of this very program. Each leads its process group. False where
/// there is none yet.
bool send_to_ranks(pid_t mpirun, int signal) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  bool is_sent = false;
  for (const pid_t child : children_of(mpirun)) {
    if (fs::read_symlink(text("/proc/", child, "/exe"), error) != self) continue;
    is_sent |= kill(getpgid(child) == child ? -child : child, signal) == 0;
  }
  return is_sent;
}

[[noreturn]] void become(const std::vector<std::string>& command,
                         const sigset_t& signals,
                         const Output& output) {
  output.become_stdout();
  setpgid(0, 0);                     // Ctrl-C reaches the parent alone, which hands it on
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // on which mpirun ends its job
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_DFL);  // NOLINT(cert-err33-c)
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(bench::kConfiguration);
}

/// mpirun as its parent sees it.
class Job {
 public:
  explicit Job(pid_t mpirun) : mpirun_(mpirun) {}

  bool is_over() const { return has_ended_ || is_abandoned_; }
  bool is_abandoned() const { return is_abandoned_; }

  /// Takes one signal, or the passing of time.
  void take(int signal, const siginfo_t& info) {
    const Clock::time_point now = Clock::now();
    if (signal == SIGCHLD) {
      reap();
    } else if (signal == SIGRTMIN && failure_ == 0) {
      failure_ = info.si_value.sival_int;
      wait_until_ = now + kEndOfJob;
    } else if ((signal == SIGINT || signal == SIGTERM) && now >= obey_from_) {
      is_abandoned_ = true;
    } else if ((signal == SIGINT || signal == SIGTERM) && obey_from_ == Clock::time_point::max()) {
      obey_from_ = now + kSameSignal;
      is_too_early_ = !send_to_ranks(mpirun_, signal);
      if (is_too_early_) kill(mpirun_, signal);
    }
    if (now > wait_until_) is_abandoned_ = true;
  }

  /// Asks the ranks to end.
  void stop() {
    if (wait_until_ != Clock::time_point::max()) return;
    wait_until_ = Clock::now() + kEndOfJob;
    send_to_ranks(mpirun_, SIGTERM);
  }

  /// Why the job ended, when no rank of this machine has told.
  void explain() const {
    if (failure_ != 0 || !has_ended_ || status_ == 0) return;
    std::fprintf(stderr,
                 "accrue: mpirun ended with %s %d\n",
                 WIFEXITED(status_) ? "exit code" : "signal",
                 WIFEXITED(status_) ? WEXITSTATUS(status_) : WTERMSIG(status_));
  }

  /// mpirun returns 128 + n for a rank that died of signal n, and 255 when it starts none.
  int exit_code() const {
    if (failure_ != 0) return failure_;
    if (!has_ended_ || is_too_early_ || !WIFEXITED(status_)) return bench::kRankLost;
    const int code = WEXITSTATUS(status_);
    return code > 128 && code <= 128 + SIGRTMAX ? bench::kRankLost : code;
  }

 private:
  void reap() {
    int status = 0;
    for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended != mpirun_) continue;
      has_ended_ = true;
      status_ = status;
    }
  }

  pid_t mpirun_;
  bool has_ended_ = false, is_abandoned_ = false;
  bool is_too_early_ = false;                                ///< a signal that no rank got
  int status_ = 0;                                           ///< of mpirun, when it has ended
  int failure_ = 0;                                          ///< of the rank that failed first
  Clock::time_point wait_until_ = Clock::time_point::max();  ///< for mpirun to end
  Clock::time_point obey_from_ = Clock::time_point::max();   ///< the next signal, after the first
};

}  // namespace

int run_job(const std::vector<std::string>& command) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD, SIGRTMIN}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  adopt_orphans();
  Output output;
  const pid_t mpirun = fork();
  if (mpirun == -1) {
    throw bench::ProgramEnd{bench::kOutOfMemory, text("cannot fork: ", std::strerror(errno))};
  }
  if (mpirun == 0) become(command, signals, output);
  output.close_writer();
  const int any_signal = signalfd(-1, &signals, SFD_CLOEXEC);
  constexpr timespec kNoTime{};
  siginfo_t info = {};
  Job job(mpirun);
  while (!job.is_over()) {
    output.move_or_wait(any_signal);
    if (output.error() != 0) job.stop();
    const int signal = sigtimedwait(&signals, &info, &kNoTime);
    job.take(signal, info);
  }
  sigset_t reports;  // they come after the end of mpirun when both are pending
  sigemptyset(&reports);
  sigaddset(&reports, SIGRTMIN);
  while (sigtimedwait(&reports, &info, &kNoTime) == SIGRTMIN) job.take(SIGRTMIN, info);
  kill_children();
  close(any_signal);
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  output.finish(job.is_abandoned());
  const int code = job.exit_code();
  if (output.error() != 0 && (code == bench::kDone || code == bench::kRankLost)) {
    throw bench::ProgramEnd{bench::kInputOutput,
                            text("cannot write to stdout: ", std::strerror(output.error()))};
  }
  job.explain();
  return code;
}

void report_failure(pid_t process, int code) {
  sigval value;
  value.sival_int = code;
  sigqueue(process, SIGRTMIN, value);
}

}  // namespace accrue::tools
