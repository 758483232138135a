#include "accrue/train/stop_signal.h"

#include "accrue/core/error.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>

namespace accrue::train {
namespace {

constexpr std::array<int, 2> kSignals{SIGTERM, SIGINT};
constexpr std::int64_t kSameSignal = 1'000'000'000;

// What the handler may touch. Times are nanoseconds of a clock that never stands at 0.
std::atomic<bool> exists = false;
std::atomic<std::int64_t> came_at = 0;
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
std::array<struct sigaction, kSignals.size()> former;

void restore() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &former[i], nullptr);
}

void take(int signal) {
  const int error = errno;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t time = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec + 1;
  std::int64_t first = 0;
  if (!came_at.compare_exchange_strong(first, time) && time - first >= kSameSignal) {
    restore();
    raise(signal);  // acts when this returns
  }
  errno = error;
}

}  // namespace

StopSignal::StopSignal() {
  ACCRUE_CHECK(!exists.exchange(true),
               StateError,
               "stop_signal",
               "a process can have one, got a second; make it in main and pass it on");
  came_at = 0;
  struct sigaction action = {};
  action.sa_handler = take;
  action.sa_flags = SA_RESTART;
  for (const int signal : kSignals) sigaddset(&action.sa_mask, signal);
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &former[i]);
}

StopSignal::~StopSignal() {
  restore();
  exists = false;
}

bool StopSignal::has_come_here() const noexcept { return came_at != 0; }

bool StopSignal::has_come(const ProcessState& ranks) const {
  Tensor any = Tensor::full({1}, has_come_here() ? 1 : 0, DType::int64);
  ranks.process_group().all_reduce(any, dist::ReduceOp::max);
  return any.item<std::int64_t>() != 0;
}

}  // namespace accrue::train
