// Waiting: who is woken, who does not sleep, when a wait ends.
#include "accrue/dist/waiting.h"

#include "accrue/tests/support/doctest.h"

#include <thread>

using namespace accrue::dist;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kTurns = 400;

/// Raises the count at every second turn, and sleeps in between.
void take_turns(SharedCount& count, std::uint32_t first) {
  for (std::uint32_t turn = first; turn < kTurns; turn += 2) {
    for (std::uint32_t seen = count.read(); seen < turn; seen = count.read()) count.sleep(seen);
    count.raise(turn + 1);
  }
}

/// Seconds of two threads that take turns.
double seconds_of_turns() {
  const auto start = Clock::now();
  SharedCount count;
  std::thread other(take_turns, std::ref(count), 1);
  take_turns(count, 0);
  other.join();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

TEST_CASE("dist.waiting: a sleeper is woken by the last that raises the count") {
  // Sleepers that nobody wakes come back after a millisecond. Other programs may keep the
  // processor.
  bool in_time = false;
  for (int i = 0; i < 50 && !in_time; ++i) in_time = seconds_of_turns() < 0.5e-3 * kTurns;
  CHECK(in_time);
}

TEST_CASE("dist.waiting: a count that moved on lets nobody sleep") {
  SharedCount count;
  count.raise(0);
  const auto start = Clock::now();
  for (int i = 0; i < 1000; ++i) count.sleep(0);
  CHECK(std::chrono::duration<double>(Clock::now() - start).count() < 0.5);
  CHECK(count.read() == 1);
}

TEST_CASE("dist.waiting: a wait ends at its deadline") {
  SharedCount count;
  for (const int num_ranks : {1, 100'000}) {
    Waiting waiting(0.01, num_ranks);
    const auto start = Clock::now();
    while (waiting.pause(count, 0)) {
    }
    CHECK(std::chrono::duration<double>(Clock::now() - start).count() >= 0.01);
    CHECK(waiting.is_long());
  }
}
