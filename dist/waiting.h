// Waiting: how a rank passes the time until another rank has come, up to a deadline.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace accrue::dist {

/// A count that threads, or processes that share its memory, raise and sleep by.
class SharedCount {
 public:
  std::uint32_t read() const { return count_.load(std::memory_order_acquire); }
  /// Adds one, and wakes all sleepers if that makes it `last`. Counts wrap.
  void raise(std::uint32_t last);
  /// Sleeps until it is woken, but no more than a millisecond, and only if the count is still
  /// `seen`.
  void sleep(std::uint32_t seen);

 private:
  std::atomic<std::uint32_t> count_{0}, num_sleepers_{0};
};

/// Spins for some microseconds, then yields, then sleeps: a step between busy ranks costs no system
/// call, and a long wait no processor. Ranks that outnumber the cores yield at once. Where a
/// yield took long, other programs want the core, and ranks of this process sleep at once for a
/// while: a sleeper is woken when its turn comes, one that yields waits for a slice of theirs.
class Waiting {
 public:
  Waiting(double seconds, int num_ranks);
  /// Without spinning: for polls that may make system calls, whose time the deadline must count.
  explicit Waiting(double seconds) : seconds_(seconds) {}
  /// Lets a little time pass. False once the deadline is over.
  bool pause();
  /// The same, where what ends the wait raises `count` above `seen`.
  bool pause(SharedCount& count, std::uint32_t seen);
  /// Whether the wait is so long that a system call more does not matter.
  bool is_long() const { return is_long_; }

 private:
  using Clock = std::chrono::steady_clock;

  enum class Turn { taken, sleep, late };
  Turn spin_or_yield();

  double seconds_;
  int spins_ = 0;
  bool is_long_ = false;
  std::int64_t count_ = 0;
  Clock::time_point start_{};  ///< taken when spinning ends: reading a clock costs more than a step
};

}  // namespace accrue::dist
