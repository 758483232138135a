// StopSignal: what it does with signals, and that ranks agree on the step after which they stop.
#include "accrue/train/stop_signal.h"

#include "accrue/dist/threads.h"
#include "accrue/tests/support/doctest.h"

#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

using namespace accrue;
using train::ProcessState;
using train::StopSignal;

namespace {

volatile std::sig_atomic_t passed_on = 0;

/// Counts the signals that nobody catches before it.
class Counting {
 public:
  Counting() : former_term_(std::signal(SIGTERM, count)), former_int_(std::signal(SIGINT, count)) {
    passed_on = 0;
  }
  ~Counting() {
    std::signal(SIGTERM, former_term_);  // NOLINT(cert-err33-c)
    std::signal(SIGINT, former_int_);    // NOLINT(cert-err33-c)
  }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

 private:
  static void count(int) { passed_on = passed_on + 1; }

  void (*former_term_)(int);
  void (*former_int_)(int);
};

}  // namespace

TEST_CASE("train.stop_signal: it catches SIGTERM and SIGINT while it lives") {
  const Counting counting;
  for (const int signal : {SIGTERM, SIGINT}) {
    const StopSignal stop;
    CHECK(!stop.has_come_here());
    CHECK(!stop.has_come(ProcessState()));
    std::raise(signal);
    CHECK(stop.has_come_here());
    CHECK(stop.has_come(ProcessState()));
    CHECK(passed_on == 0);
  }
  std::raise(SIGTERM);
  std::raise(SIGINT);
  CHECK(passed_on == 2);
}

TEST_CASE("train.stop_signal: a second signal acts when it comes a second later") {
  const Counting counting;
  const StopSignal stop;
  std::raise(SIGTERM);
  std::raise(SIGTERM);
  std::raise(SIGINT);
  CHECK(passed_on == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(1010));
  std::raise(SIGINT);
  CHECK(passed_on == 1);
  CHECK(stop.has_come_here());
}

TEST_CASE("train.stop_signal: a process has one at a time") {
  const StopSignal stop;
  CHECK_THROWS_AS(StopSignal(), StateError);
}

TEST_CASE("train.stop_signal: all ranks stop after the same step") {
  for (const int ranks : {1, 2, 3}) {
    for (int sender = 0; sender < ranks; ++sender) {
      const StopSignal stop;
      std::vector<int> steps(static_cast<std::size_t>(ranks));
      dist::run_ranks(ranks, [&](dist::ProcessGroup& group) {
        const ProcessState state(&group);
        int& step = steps[static_cast<std::size_t>(group.rank())];
        do {
          if (++step == 20 && group.rank() == sender) std::raise(SIGTERM);
        } while (!stop.has_come(state));
      });
      // Ranks run up to a step ahead of the one that gets the signal.
      CHECK((steps[0] == 19 || steps[0] == 20));
      for (const int step : steps) CHECK(step == steps[0]);
    }
  }
}
