// The thread pool under parallel_for: one job at a time, cut into one range per thread.
#include "accrue/kernels/cpu/parallel.h"

#include "accrue/core/error.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace accrue::kernels {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int kSpins = 4000;  // tens of microseconds: the gap between the kernels of one step

thread_local bool in_parallel = false;

int default_num_threads() {
  if (const char* value = std::getenv("ACCRUE_NUM_THREADS")) {
    int count = 0;
    const char* end = value + std::strlen(value);
    const auto [stop, error] = std::from_chars(value, end, count);
    ACCRUE_CHECK(error == std::errc() && stop == end && count >= 1 && count <= kMaxThreads,
                 ValueError,
                 "num_threads",
                 "ACCRUE_NUM_THREADS must be a number in [1, 1024], got '",
                 value,
                 "'; correct or unset it");
    return count;
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::clamp(CPU_COUNT(&set), 1, kMaxThreads);
}

std::atomic<int>& thread_count() {
  static std::atomic<int> count = default_num_threads();
  return count;
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Spins for a short while, then sleeps until `ready` holds. Whoever makes it hold notifies.
template <class Ready>
void await(std::mutex& mutex, std::condition_variable& changed, const Ready& ready) {
  for (int i = 0; i < kSpins; ++i) {
    if (ready()) return;
    pause();
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, ready);
}

/// Threads that share one job at a time. A job's ranges are fixed beforehand; each is run by the
/// thread that claims it first, so a caller whose helpers are slow to wake runs them all itself.
class Pool {
 public:
  void run(std::int64_t count, std::int64_t grain, const RangeBody& body) {
    std::unique_lock busy(busy_, std::defer_lock);
    const DefaultFloats floats;
    if (in_parallel || !busy.try_lock()) return body(0, count);
    start(thread_count().load(std::memory_order_relaxed) - 1);
    const std::int64_t most = std::max<std::int64_t>(count / std::max<std::int64_t>(grain, 1), 1);
    parts_ = std::min<std::int64_t>(std::ssize(workers_) + 1, most);
    count_ = count;
    body_ = &body;
    left_.store(parts_, std::memory_order_relaxed);
    announce(has_work_, [this] { unclaimed_.store(parts_, std::memory_order_release); });
    work();
    await(mutex_, is_done_, [this] { return left_.load(std::memory_order_acquire) == 0; });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  void resize(int count) {
    std::lock_guard busy(busy_);
    thread_count().store(count, std::memory_order_relaxed);
    if (std::ssize(workers_) != count - 1) stop();
  }

 private:
  void start(int count) {
    if (!workers_.empty()) return;
    stopping_ = false;
    for (int i = 0; i < count; ++i) workers_.emplace_back([this] { serve(); });
  }

  void stop() {
    announce(has_work_, [this] { stopping_ = true; });
    for (auto& worker : workers_) worker.join();
    workers_.clear();
  }

  void serve() {
    const DefaultFloats floats;
    while (!stopping_) {
      await(mutex_, has_work_, [this] {
        return stopping_ || unclaimed_.load(std::memory_order_relaxed) > 0;
      });
      work();
    }
  }

  /// Claims and runs ranges until none is left.
  void work() {
    for (std::int64_t part; (part = claim()) >= 0;) {
      run_part(part);
      // The last range may end in a helper, whose caller then sleeps.
      if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) announce(is_done_, [] {});
    }
  }

  /// The number of a range nobody runs yet, or -1. Only after a claim may the job be read: it
  /// cannot end, and be replaced, before the claimed range has run.
  std::int64_t claim() {
    std::int64_t unclaimed = unclaimed_.load(std::memory_order_relaxed);
    while (unclaimed > 0 &&
           !unclaimed_.compare_exchange_weak(unclaimed, unclaimed - 1, std::memory_order_acq_rel)) {
    }
    return unclaimed - 1;
  }

  /// Runs one range and keeps the first exception.
  void run_part(std::int64_t part) noexcept {
    in_parallel = true;
    try {
      (*body_)(count_ * part / parts_, count_ * (part + 1) / parts_);
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
    in_parallel = false;
  }

  /// Makes a change that sleepers wait for: under the mutex, so that none misses it.
  template <class Change>
  void announce(std::condition_variable& changed, const Change& change) {
    {
      std::lock_guard lock(mutex_);
      change();
    }
    changed.notify_all();
  }

  std::mutex busy_;  // held for the length of a job
  std::vector<std::thread> workers_;
  std::int64_t parts_ = 0, count_ = 0;  // the job: written before unclaimed_
  const RangeBody* body_ = nullptr;
  std::exception_ptr failure_;
  std::atomic<std::int64_t> unclaimed_ = 0, left_ = 0;  // ranges not yet begun, not yet ended
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::condition_variable has_work_, is_done_;
};

/// Never destroyed: its threads sleep until the process ends, so static destructors may still
/// call parallel_for.
Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

}  // namespace

int num_threads() { return thread_count().load(std::memory_order_relaxed); }

void set_num_threads(int count) {
  ACCRUE_CHECK(count >= 1 && count <= kMaxThreads,
               ValueError,
               "set_num_threads",
               "the number of threads must lie in [1, 1024], got ",
               count,
               "; 1 runs everything in the caller");
  ACCRUE_CHECK(!in_parallel,
               StateError,
               "set_num_threads",
               "must not be called inside a parallel_for; call it between kernels");
  pool().resize(count);
}

void run_parallel(std::int64_t count, std::int64_t grain, RangeBody body) {
  pool().run(count, grain, body);
}

}  // namespace accrue::kernels
