// Waiting: how a rank passes the time until another rank has come, up to a deadline.
#pragma once

#include <chrono>
#include <cstdint>

namespace accrue::dist {

/// Spins for some microseconds, then yields, then naps: a step between busy ranks costs no system
/// call, and a long wait no processor. Ranks that outnumber the cores yield at once.
class Waiting {
 public:
  Waiting(double seconds, int num_ranks);
  /// Lets a little time pass. False once the deadline is over.
  bool pause();
  /// Whether the wait is so long that a system call more does not matter.
  bool is_long() const { return naps_ > 0; }

 private:
  using Clock = std::chrono::steady_clock;

  double seconds_;
  int spins_;
  std::int64_t count_ = 0, naps_ = 0;
  Clock::time_point start_{};  ///< taken when spinning ends: reading a clock costs more than a step
};

}  // namespace accrue::dist
