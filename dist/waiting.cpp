#include "accrue/dist/waiting.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <limits>
#include <thread>

namespace accrue::dist {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSpins = 2000;
constexpr std::chrono::microseconds kYielding{2000}, kNap{100};
constexpr std::chrono::microseconds kLongYield{2000};  // a neighbour had the core
constexpr std::chrono::milliseconds kCrowded{20};      // how long that is remembered

/// Until when yielding is no use.
std::atomic<Clock::rep> crowded_until{std::numeric_limits<Clock::rep>::min()};

/// Read once: the standard library opens a file for it.
int num_cores() {
  static const int count = static_cast<int>(std::thread::hardware_concurrency());
  return count;
}

}  // namespace

void SharedCount::raise(std::uint32_t last) {
  if (count_.fetch_add(1) + 1 != last || num_sleepers_.load() == 0) return;
  syscall(SYS_futex, &count_, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

void SharedCount::sleep(std::uint32_t seen) {
  const timespec longest{0, 1'000'000};
  num_sleepers_.fetch_add(1);
  syscall(SYS_futex, &count_, FUTEX_WAIT, seen, &longest, nullptr, 0);
  num_sleepers_.fetch_sub(1);
}

Waiting::Waiting(double seconds, int num_ranks)
    : seconds_(seconds), spins_(num_ranks <= num_cores() ? kSpins : 0) {}

bool Waiting::pause() {
  const Turn turn = spin_or_yield();
  if (turn == Turn::sleep) std::this_thread::sleep_for(kNap);
  return turn != Turn::late;
}

bool Waiting::pause(SharedCount& count, std::uint32_t seen) {
  const Turn turn = spin_or_yield();
  if (turn == Turn::sleep) count.sleep(seen);
  return turn != Turn::late;
}

Waiting::Turn Waiting::spin_or_yield() {
  if (count_++ < spins_) return Turn::taken;
  const Clock::time_point now = Clock::now();
  if (start_ == Clock::time_point{}) start_ = now;
  is_long_ = now - start_ >= kYielding;
  if (std::chrono::duration<double>(now - start_).count() > seconds_) return Turn::late;
  if (is_long_ || now.time_since_epoch().count() < crowded_until.load(std::memory_order_relaxed)) {
    return Turn::sleep;
  }
  std::this_thread::yield();
  if (Clock::now() - now > kLongYield) {
    crowded_until.store((now + kCrowded).time_since_epoch().count(), std::memory_order_relaxed);
  }
  return Turn::taken;
}

}  // namespace accrue::dist
