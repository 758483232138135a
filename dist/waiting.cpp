#include "accrue/dist/waiting.h"

#include <thread>

namespace accrue::dist {
namespace {

constexpr int kSpins = 2000;
constexpr std::chrono::microseconds kYielding{2000}, kNap{100};

/// Read once: the standard library opens a file for it.
int num_cores() {
  static const int count = static_cast<int>(std::thread::hardware_concurrency());
  return count;
}

}  // namespace

Waiting::Waiting(double seconds, int num_ranks)
    : seconds_(seconds), spins_(num_ranks <= num_cores() ? kSpins : 0) {}

bool Waiting::pause() {
  if (count_++ < spins_) return true;
  if (start_ == Clock::time_point{}) start_ = Clock::now();
  const Clock::duration waited = Clock::now() - start_;
  if (std::chrono::duration<double>(waited).count() > seconds_) return false;
  if (waited < kYielding) {
    std::this_thread::yield();
  } else {
    ++naps_;
    std::this_thread::sleep_for(kNap);
  }
  return true;
}

}  // namespace accrue::dist
