// parallel_for: coverage, nesting, exceptions, several callers; and the choice of the CPU path.
#include "accrue/kernels/cpu/parallel.h"

#include "accrue/core/error.h"
#include "accrue/kernels/cpu/isa.h"
#include "accrue/kernels/elementwise.h"
#include "accrue/tests/kernels/lane_reference.h"
#include "accrue/tests/support/doctest.h"

#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace accrue;
using namespace accrue::kernels;
using accrue::test::KeepSettings;

namespace {

/// How often each index of [0, count) was visited.
std::vector<int> visits(std::int64_t count, std::int64_t grain) {
  std::vector<int> seen(static_cast<std::size_t>(count));
  parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
  });
  return seen;
}

}  // namespace

TEST_CASE("kernels.parallel: every index is visited once, for any count, grain and threads") {
  const KeepSettings keep;
  int cases = 0;
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    CHECK(num_threads() == threads);
    for (const std::int64_t count : {0, 1, 2, 3, 10, 1000}) {
      for (const std::int64_t grain : {0, 1, 2, 5, 999, 5000}) {
        CHECK(visits(count, grain) == std::vector<int>(static_cast<std::size_t>(count), 1));
        ++cases;
      }
    }
  }
  MESSAGE(cases, " ranges");
}

TEST_CASE(
    "kernels.parallel: a thread that flushes subnormals changes no bits, and keeps its mode") {
  const KeepSettings keep;
  constexpr unsigned kFlush = 0x8040, kUpwards = 0x4000;
  const std::vector<float> x(100'000, 0x1.8p-130F);
  const Tensor source = Tensor::from(x, {std::ssize(x)});
  // 0x1.8p-149 is a tie between one and two of the smallest subnormals.
  const std::vector<float> wanted(x.size(), 0x1p-148F);
  for (const unsigned mode : {kFlush, kUpwards, kFlush | kUpwards}) {
    for (const int threads : {1, 3}) {
      set_num_threads(1);
      set_num_threads(threads);  // the helpers start in the thread below
      Tensor y = Tensor::empty(source.shape());
      unsigned before = 0, after = 1;
      std::thread([&] {
        set_float_mode(kDefaultFloatMode | mode);
        before = float_mode();
        launch_cpu(ScalarForward{BinaryOp::mul, source, 0x1p-19, y});
        after = float_mode();
      }).join();
      CHECK(y.to_vector<float>() == wanted);
      CHECK(after == before);
    }
  }
}
TEST_CASE("kernels.parallel: the work is split over threads, and never below the grain") {
  const KeepSettings keep;
  set_num_threads(3);
  std::latch all_run(2);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  std::vector<std::int64_t> lengths;
  parallel_for(100, 40, [&](std::int64_t begin, std::int64_t end) {
    all_run.arrive_and_wait();
    const std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
    lengths.push_back(end - begin);
  });
  CHECK(ids.size() == 2);
  CHECK(lengths == std::vector<std::int64_t>{50, 50});
}

TEST_CASE("kernels.parallel: nested calls run inline") {
  const KeepSettings keep;
  set_num_threads(3);
  std::atomic<int> inner = 0, elsewhere = 0;
  parallel_for(3, 1, [&](std::int64_t, std::int64_t) {
    const auto id = std::this_thread::get_id();
    parallel_for(100, 1, [&](std::int64_t begin, std::int64_t end) {
      inner += static_cast<int>(end - begin);
      elsewhere += std::this_thread::get_id() != id;
    });
  });
  CHECK(inner == 300);
  CHECK(elsewhere == 0);
}

TEST_CASE("kernels.parallel: an exception of any range reaches the caller, and the pool lives on") {
  const KeepSettings keep;
  set_num_threads(4);
  for (std::int64_t bad = 0; bad < 4; ++bad) {
    const auto run = [&] {
      parallel_for(4, 1, [&](std::int64_t begin, std::int64_t) {
        if (begin == bad) throw std::runtime_error("range " + std::to_string(begin));
      });
    };
    CHECK_THROWS_WITH_AS(run(), ("range " + std::to_string(bad)).c_str(), std::runtime_error);
    CHECK(visits(10, 1) == std::vector<int>(10, 1));
  }
}

TEST_CASE("kernels.parallel: several threads may call at once") {
  const KeepSettings keep;
  set_num_threads(3);
  std::atomic<int> sum = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i)
        parallel_for(6, 1, [&](std::int64_t begin, std::int64_t end) {
          sum += static_cast<int>(end - begin);
        });
    });
  }
  for (int i = 0; i < 20; ++i) set_num_threads(1 + i % 3);
  for (auto& caller : callers) caller.join();
  CHECK(sum == 4 * 200 * 6);
}

TEST_CASE(
    "kernels.parallel: a number of threads out of range and a change in mid-loop are refused") {
  const KeepSettings keep;
  CHECK_THROWS_WITH_AS(
      set_num_threads(0),
      "[set_num_threads] the number of threads must lie in [1, 1024], got 0; 1 runs "
      "everything in the caller",
      ValueError);
  set_num_threads(2);
  const auto change = [] {
    parallel_for(2, 1, [](std::int64_t, std::int64_t) { set_num_threads(3); });
  };
  CHECK_THROWS_WITH_AS(
      change(),
      "[set_num_threads] must not be called inside a parallel_for; call it between "
      "kernels",
      StateError);
  CHECK(num_threads() == 2);
}

TEST_CASE("kernels.parallel: the CPU path can be set to what the machine runs") {
  const KeepSettings keep;
  for (const Isa isa : accrue::test::all_isas()) {
    set_isa(isa);
    CHECK(current_isa() == isa);
  }
  if (best_isa() == Isa::avx512) return;
  CHECK_THROWS_WITH_AS(set_isa(Isa::avx512),
                       text("[set_isa] this build and CPU must offer the isa, got avx512; use ",
                            name_of(best_isa()),
                            ", which gives the same bits")
                           .c_str(),
                       ValueError);
}
