// WindowPlan against a naive model (exhaustive for small sizes), golden tables, limits and errors.
#include "accrue/data/window_plan.h"

#include "accrue/core/error.h"
#include "accrue/tests/support/doctest.h"

#include <rapidcheck.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

using accrue::IndexError;
using accrue::text;
using accrue::ValueError;
using accrue::data::Dealing;
using accrue::data::MicroStep;
using accrue::data::Range;
using accrue::data::WindowPlan;
using accrue::data::WindowPlanOptions;

namespace {

// ---- the naive model: positions one by one ----

using MicroBatch = std::vector<std::int64_t>;  // positions in the window

std::vector<std::int64_t> naive_windows(const WindowPlanOptions& o) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < o.num_samples; ++i) {
    if (i % o.global_batch_size == 0) sizes.push_back(0);
    ++sizes.back();
  }
  if (o.drop_last && !sizes.empty() && sizes.back() < o.global_batch_size) sizes.pop_back();
  return sizes;
}

std::int64_t naive_lane(const WindowPlanOptions& o, std::int64_t position) {
  std::int64_t lane = 0;
  while ((lane + 1) * o.global_batch_size / o.lanes <= position) ++lane;
  return lane;
}

int naive_rank(const WindowPlanOptions& o, std::int64_t position) {
  if (o.dealing == Dealing::round_robin) {
    return static_cast<int>(position / o.micro_batch_size % o.world_size);
  }
  const std::int64_t lane = naive_lane(o, position);
  int rank = 0;
  while ((rank + 1) * o.lanes / o.world_size <= lane) ++rank;
  return rank;
}

bool naive_is_legal(const WindowPlanOptions& o) {
  if (o.world_size > o.lanes) return false;
  const auto sizes = naive_windows(o);
  if (sizes.empty() && o.num_samples > 0) return false;
  for (const std::int64_t size : sizes) {
    for (std::int64_t p = 1; p < size; ++p) {
      const bool same_lane = naive_lane(o, p) == naive_lane(o, p - 1);
      if (same_lane && naive_rank(o, p) != naive_rank(o, p - 1)) return false;
    }
  }
  return true;
}

/// Micro-batches are filled with the rank's positions in order.
std::vector<MicroBatch> naive_share(const WindowPlanOptions& o, std::int64_t size, int rank) {
  std::vector<MicroBatch> steps(1);
  for (std::int64_t p = 0; p < size; ++p) {
    if (naive_rank(o, p) != rank) continue;
    if (static_cast<std::int64_t>(steps.back().size()) == o.micro_batch_size) steps.emplace_back();
    steps.back().push_back(p);
  }
  return steps;
}

/// Empty micro-batches follow where other ranks have more.
std::vector<MicroBatch> naive_steps(const WindowPlanOptions& o, std::int64_t size, int rank) {
  std::size_t longest = 1;
  for (int other = 0; other < o.world_size; ++other)
    longest = std::max(longest, naive_share(o, size, other).size());
  std::vector<MicroBatch> steps = naive_share(o, size, rank);
  steps.resize(longest);
  return steps;
}

// ---- comparison ----

MicroBatch positions_of(const MicroStep& step) {
  MicroBatch result;
  for (std::int64_t p = step.positions.begin; p < step.positions.end; ++p) result.push_back(p);
  return result;
}

bool lanes_are_right(const WindowPlan& plan) {
  const WindowPlanOptions& o = plan.options();
  std::vector<int> owned;
  for (int rank = 0; rank < o.world_size; ++rank) {
    for (const int lane : plan.lanes_of(rank)) {
      if (plan.rank_of(lane) != rank) return false;
      owned.push_back(lane);
    }
  }
  std::sort(owned.begin(), owned.end());
  for (int lane = 0; lane < o.lanes; ++lane) {
    if (owned[static_cast<std::size_t>(lane)] != lane) return false;
  }
  const std::int64_t longest = std::min(o.num_samples, o.global_batch_size);
  for (std::int64_t p = 0; p < longest; ++p) {
    const int lane = plan.lanes().lane_of(p);
    if (lane != naive_lane(o, p) || plan.rank_of(lane) != naive_rank(o, p)) return false;
  }
  return owned.size() == static_cast<std::size_t>(o.lanes);
}

bool rank_is_right(const WindowPlan& plan, int rank) {
  const auto sizes = naive_windows(plan.options());
  std::int64_t index = 0;  // in the epoch of this rank
  std::int64_t window = 0;
  for (const std::int64_t size : sizes) {
    const auto expected = naive_steps(plan.options(), size, rank);
    const auto steps = plan.steps(rank, window);
    if (steps.size() != expected.size()) return false;
    for (std::size_t t = 0; t < steps.size(); ++t) {
      const bool is_right = steps[t].window == window && positions_of(steps[t]) == expected[t] &&
                            steps[t].ends_window == (t + 1 == steps.size()) &&
                            plan.step(rank, index++) == steps[t];
      if (!is_right) return false;
    }
    const std::int64_t begin = window * plan.options().global_batch_size;
    if (plan.window(window) != Range{begin, begin + size}) return false;
    ++window;
  }
  return plan.num_windows() == window && plan.steps_in_epoch() == index;
}

/// Empty when the plan agrees with the model; the fault otherwise.
std::string fault_of(const WindowPlanOptions& o) {
  const std::string where = text("n ",
                                 o.num_samples,
                                 " B ",
                                 o.global_batch_size,
                                 " b ",
                                 o.micro_batch_size,
                                 " L ",
                                 o.lanes,
                                 " W ",
                                 o.world_size,
                                 " dealing ",
                                 static_cast<int>(o.dealing),
                                 " drop_last ",
                                 o.drop_last);
  try {
    const WindowPlan plan(o);
    if (!naive_is_legal(o)) return where + ": accepted";
    if (!lanes_are_right(plan)) return where + ": lanes";
    for (int rank = 0; rank < o.world_size; ++rank) {
      if (!rank_is_right(plan, rank)) return where + text(": steps of rank ", rank);
    }
  } catch (const ValueError& error) {
    if (naive_is_legal(o)) return where + ": refused: " + error.what();
  }
  return "";
}

std::string message_of(const WindowPlanOptions& o) {
  try {
    const WindowPlan plan(o);
  } catch (const ValueError& error) {
    return error.what();
  }
  return "accepted";
}

/// "0-2 3-5 | 6-8": the micro-steps of a rank; | ends a window, - is an empty one.
std::string table(const WindowPlan& plan, int rank) {
  std::string result;
  for (std::int64_t i = 0; i < plan.steps_in_epoch(); ++i) {
    const MicroStep step = plan.step(rank, i);
    const Range& p = step.positions;
    if (i > 0) result += ' ';
    result += p.empty() ? "-" : p.size() == 1 ? text(p.begin) : text(p.begin, "-", p.end - 1);
    if (step.ends_window) result += " |";
  }
  return result;
}

}  // namespace

TEST_CASE("data.window_plan: small plans equal the naive model in every position") {
  std::int64_t num_plans = 0;
  std::int64_t num_legal = 0;
  std::int64_t num_faults = 0;
  std::string first_fault;
  const auto visit = [&](const WindowPlanOptions& options) {
    ++num_plans;
    num_legal += naive_is_legal(options);
    const std::string fault = fault_of(options);
    if (!fault.empty() && num_faults++ == 0) first_fault = fault;
  };
  for (const std::int64_t n : {0, 1, 2, 3, 5, 7, 8, 12, 16, 17, 24, 25, 31, 33}) {
    for (std::int64_t big = 1; big <= 16; ++big) {
      for (std::int64_t b = 1; b <= 9; ++b) {
        for (const int lanes : {1, 2, 4, 8, 16}) {
          for (int ranks = 1; ranks <= 6; ++ranks) {
            for (const Dealing dealing : {Dealing::contiguous, Dealing::round_robin}) {
              visit({n, big, b, lanes, ranks, dealing, false});
              visit({n, big, b, lanes, ranks, dealing, true});
            }
          }
        }
      }
    }
  }
  INFO(first_fault);
  CHECK(num_faults == 0);
  MESSAGE(num_plans << " plans compared, " << num_legal << " of them legal");
}

TEST_CASE("data.window_plan: random plans equal the naive model") {
  const bool holds = rc::check("plan equals model", [] {
    WindowPlanOptions o;
    o.num_samples = *rc::gen::inRange(0, 400);
    o.global_batch_size = *rc::gen::inRange(1, 130);
    o.micro_batch_size = *rc::gen::inRange(1, 40);
    o.lanes = 1 << *rc::gen::inRange(0, 8);
    o.world_size = *rc::gen::inRange(1, 10);
    o.dealing = *rc::gen::element(Dealing::contiguous, Dealing::round_robin);
    o.drop_last = *rc::gen::arbitrary<bool>();
    RC_ASSERT(fault_of(o) == "");
  });
  CHECK(holds);
}

TEST_CASE("data.window_plan: golden tables of contiguous dealing") {
  // Lanes of B = 10, L = 4: [0, 2) [2, 5) [5, 7) [7, 10).
  const WindowPlan one(
      {.num_samples = 13, .global_batch_size = 10, .micro_batch_size = 4, .lanes = 4});
  CHECK(table(one, 0) == "0-3 4-7 8-9 | 0-2 |");
  const WindowPlan three({.num_samples = 13,
                          .global_batch_size = 10,
                          .micro_batch_size = 4,
                          .lanes = 4,
                          .world_size = 3});
  CHECK(table(three, 0) == "0-1 - | 0-1 |");
  CHECK(table(three, 1) == "2-4 - | 2 |");
  CHECK(table(three, 2) == "5-8 9 | - |");
  CHECK(three.lanes_of(2) == std::vector<int>{2, 3});
  CHECK(three.window(1) == Range{10, 13});
}

TEST_CASE("data.window_plan: golden tables of round robin") {
  const WindowPlan plan({.num_samples = 21,
                         .global_batch_size = 16,
                         .micro_batch_size = 4,
                         .lanes = 8,
                         .world_size = 2,
                         .dealing = Dealing::round_robin});
  CHECK(table(plan, 0) == "0-3 8-11 | 0-3 |");
  CHECK(table(plan, 1) == "4-7 12-15 | 4 |");
  CHECK(plan.lanes_of(1) == std::vector<int>{2, 3, 6, 7});
}

TEST_CASE("data.window_plan: five ranks with two samples leave ranks without data") {
  const WindowPlan plan(
      {.num_samples = 2, .global_batch_size = 10, .micro_batch_size = 2, .world_size = 5});
  CHECK(table(plan, 0) == "0 |");
  CHECK(table(plan, 1) == "1 |");
  for (int rank = 2; rank < 5; ++rank) CHECK(table(plan, rank) == "- |");
}

TEST_CASE("data.window_plan: an empty data set has no windows") {
  const WindowPlan plan({.global_batch_size = 4, .world_size = 2, .drop_last = true});
  CHECK(plan.num_windows() == 0);
  CHECK(plan.steps_in_epoch() == 0);
}

TEST_CASE("data.window_plan: drop_last drops the short window whole") {
  const WindowPlan plan(
      {.num_samples = 13, .global_batch_size = 5, .micro_batch_size = 5, .drop_last = true});
  CHECK(table(plan, 0) == "0-4 | 0-4 |");
}

TEST_CASE("data.window_plan: sizes beyond 2^31 keep exact borders") {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  WindowPlanOptions o{.num_samples = kMax, .global_batch_size = kMax, .lanes = 8, .world_size = 3};
  o.micro_batch_size = std::int64_t{1} << 31;
  const WindowPlan plan(o);
  CHECK(plan.num_windows() == 1);
  CHECK(plan.lanes().begin(1) == (std::int64_t{1} << 60) - 1);  // floor((2^63 - 1) / 8)
  CHECK(plan.lanes().lane_of((std::int64_t{1} << 60) - 2) == 0);
  CHECK(plan.lanes().lane_of(kMax - 1) == 7);
  const std::int64_t last = plan.steps_in_epoch() - 1;
  CHECK(plan.step(2, last).positions.end == kMax);
  CHECK(plan.step(2, last).ends_window);
  CHECK(plan.step(0, last).positions.empty());  // two lanes of eight, the others have three
  CHECK(plan.step(1, 0).positions.begin == plan.step(0, last).positions.end);

  o.micro_batch_size = kMax;
  CHECK(WindowPlan(o).step(2, 0).positions.end == kMax);
  o.global_batch_size = 3000000000;
  const WindowPlan many(o);
  CHECK(many.num_windows() == 3074457346);  // ceil((2^63 - 1) / 3e9)
  CHECK(many.step(0, many.num_windows() - 1).window == many.num_windows() - 1);
}

TEST_CASE("data.window_plan: round robin keeps exact borders beyond 2^31") {
  const std::int64_t b = std::int64_t{1} << 40;
  const WindowPlan plan({.num_samples = 8 * b - 1,
                         .global_batch_size = 8 * b,
                         .micro_batch_size = b,
                         .world_size = 4,
                         .dealing = Dealing::round_robin});
  CHECK(plan.step(3, 1).positions == Range{7 * b, 8 * b - 1});
}

TEST_CASE("data.window_plan: refused numbers name what would work") {
  CHECK(message_of({.num_samples = -1}) == "[window_plan] num_samples must be >= 0, got -1");
  CHECK(message_of({.global_batch_size = 0}) ==
        "[window_plan] global_batch_size must be >= 1, got 0; the default is world_size * "
        "accumulation steps * micro_batch_size");
  CHECK(message_of({.micro_batch_size = -3}) ==
        "[window_plan] micro_batch_size must be >= 1, got -3");
  CHECK(message_of({.num_samples = 3, .global_batch_size = 4, .drop_last = true}) ==
        "[window_plan] drop_last must leave a window, got 3 samples for global_batch_size 4; use "
        "global_batch_size <= 3 or drop_last = false");
}

TEST_CASE("data.window_plan: refused lanes and ranks name what would work") {
  const std::string head = "[window_plan] lanes must be a power of two in [1, 32768], got ";
  CHECK(message_of({.lanes = 6}) == head + "6; use 4 or 8");
  CHECK(message_of({.lanes = 0}) == head + "0; use 1");
  CHECK(message_of({.lanes = 65536}) == head + "65536; use 32768");
  CHECK(message_of({.world_size = 0}) == "[window_plan] world_size must lie in [1, 32768], got 0");
  CHECK(
      message_of({.lanes = 4, .world_size = 5}) ==
      "[window_plan] every rank needs a lane of its own, got 5 ranks for lanes = 4; use lanes >= 8 "
      "or world_size <= 4");
  CHECK(
      message_of({.lanes = 1, .world_size = 2}) ==
      "[window_plan] every rank needs a lane of its own, got 2 ranks for lanes = 1; use lanes >= 2 "
      "or world_size <= 1");
}

TEST_CASE("data.window_plan: round robin that cuts a lane names the lane and the choices") {
  WindowPlanOptions o{.num_samples = 100, .global_batch_size = 30, .micro_batch_size = 4};
  o.world_size = 2;
  o.dealing = Dealing::round_robin;
  CHECK(message_of(o) ==
        "[window_plan] round_robin must leave every lane on one rank, got lane 1 with positions 3 "
        "to 6 on two ranks for micro_batch_size 4, global_batch_size 30, lanes 8; use one of: "
        "contiguous dealing, micro_batch_size 11 or 15 or 18 or 22, lanes 32");
  for (const std::int64_t b : {11, 15, 18, 22}) {
    o.micro_batch_size = b;
    CHECK(message_of(o) == "accepted");
  }
  o.micro_batch_size = 4;
  o.lanes = 32;
  CHECK(message_of(o) == "accepted");
}

TEST_CASE("data.window_plan: round robin offers twice the lanes when they suffice") {
  WindowPlanOptions o{.num_samples = 4, .global_batch_size = 4, .lanes = 2, .world_size = 2};
  o.dealing = Dealing::round_robin;
  CHECK(message_of(o) ==
        "[window_plan] round_robin must leave every lane on one rank, got lane 0 with positions 0 "
        "to 1 on two ranks for micro_batch_size 1, global_batch_size 4, lanes 2; use one of: "
        "contiguous dealing, micro_batch_size 2, lanes 4");
}

TEST_CASE("data.window_plan: round robin over a cut lane is legal when no window reaches the cut") {
  WindowPlanOptions o{.num_samples = 4, .global_batch_size = 30, .micro_batch_size = 4};
  o.world_size = 2;
  o.dealing = Dealing::round_robin;
  CHECK(message_of(o) == "accepted");
  o.num_samples = 5;
  CHECK(message_of(o) != "accepted");
}

TEST_CASE("data.window_plan: questions outside the plan are index errors") {
  const WindowPlan plan({.num_samples = 5, .global_batch_size = 4, .world_size = 2});
  CHECK_THROWS_WITH_AS(
      plan.window(2), "[window_plan] window must lie in [0, 2), got 2", IndexError);
  CHECK_THROWS_WITH_AS(
      plan.steps(2, 0), "[window_plan] rank must lie in [0, 2), got 2", IndexError);
  CHECK_THROWS_WITH_AS(plan.step(1, 3), "[window_plan] step must lie in [0, 3), got 3", IndexError);
  CHECK_THROWS_WITH_AS(plan.rank_of(8), "[window_plan] lane must lie in [0, 8), got 8", IndexError);
  CHECK_THROWS_AS(plan.steps_in_window(-1), IndexError);
  CHECK_THROWS_AS(plan.lanes_of(-1), IndexError);
}
