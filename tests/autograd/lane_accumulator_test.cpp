// Lane accumulators against the tree read literally, for random lanes, windows and ranks.
#include "accrue/autograd/lane_accumulator.h"

#include "accrue/core/allocator.h"
#include "accrue/kernels/linear.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/window_reference.h"

#include <bit>
#include <map>

using namespace accrue;
using namespace accrue::test;

namespace {

constexpr std::int64_t kWidth = 3;  // elements of the parameter

struct Dice {
  std::mt19937_64 random;

  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  }
};

/// A window with a gradient row per row of its samples, and the samples some micro-batch saw.
struct Problem {
  WindowSpan span;
  std::int64_t rows = 1;
  Tensor values;  ///< [size * rows, kWidth]
  std::vector<Range> micro_batches;

  const float* row(std::int64_t i) const { return values.data<float>() + i * kWidth; }
};

Problem draw(Dice& dice, bool whole_window) {
  Problem problem;
  WindowSpan& span = problem.span;
  const int lanes = 1 << dice.below(7);
  span.lanes = {.nominal_size = 1 + dice.below(40), .count = lanes};
  span.size =
      dice.below(3) == 0 ? 1 + dice.below(span.lanes.nominal_size) : span.lanes.nominal_size;
  span.end_lane = lanes;
  if (!whole_window) {  // contiguous dealing
    const auto world = 1 + dice.below(lanes), rank = dice.below(world);
    span.first_lane = static_cast<int>(rank * lanes / world);
    span.end_lane = static_cast<int>((rank + 1) * lanes / world);
  }
  problem.rows = 1 + dice.below(3);
  problem.values = Tensor::empty({span.size * problem.rows, kWidth});
  float* const values = problem.values.mutable_data<float>();
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (std::int64_t i = 0; i < problem.values.numel(); ++i) {
    values[i] = std::ldexp(uniform(dice.random), static_cast<int>(dice.below(24)) - 12);
  }
  // Micro-batches of any size; one in five is skipped, as one that does not use the parameter is.
  const std::int64_t end = lane_positions(span, span.end_lane - 1).end;
  for (std::int64_t begin = lane_positions(span, span.first_lane).begin; begin < end;) {
    const std::int64_t stop = begin + dice.below(std::min<std::int64_t>(end - begin, 9) + 1);
    if (dice.below(5) != 0) problem.micro_batches.push_back({begin, stop});
    begin = stop;
  }
  return problem;
}

/// Runs the program that the accumulator planned for a micro-batch.
void add(LaneAccumulator& accumulator, const Problem& problem, Range batch, const Tensor& like) {
  const auto [begin, end] = batch;
  LaneTarget target = accumulator.plan(begin, end, problem.rows, like);
  CHECK(target.num_scratch <= kernels::kMaxLaneScratch);
  CHECK(std::ssize(target.buffers) <= std::bit_width(unsigned(problem.span.lanes.count)));
  if (begin == end) CHECK(target.instructions.empty());
  if (target.instructions.empty()) return;
  const std::vector<float*> buffers = target.pointers<float>();
  const std::int64_t num_rows = (end - begin) * problem.rows;
  kernels::launch_cpu(kernels::LinearBiasGrad<float>{
      {problem.row(begin * problem.rows), num_rows, kWidth, kWidth, 1}, target.program(), buffers});
}

/// The sum of lane `lane` over the micro-batches, one row after another.
std::vector<float> lane_sum(const Problem& problem, int lane) {
  const auto [first, last] = lane_positions(problem.span, lane);
  std::vector<float> sum(kWidth);
  for (const auto& [begin, end] : problem.micro_batches) {
    const std::int64_t stop = std::min(end, last) * problem.rows;
    for (std::int64_t i = std::max(begin, first) * problem.rows; i < stop; ++i) {
      for (std::size_t k = 0; k < kWidth; ++k) sum[k] += problem.row(i)[k];
    }
  }
  return sum;
}

bool has_rows(const Problem& problem, int first_lane, int end_lane) {
  const std::int64_t first = lane_positions(problem.span, first_lane).begin;
  const std::int64_t last = lane_positions(problem.span, end_lane - 1).end;
  return std::any_of(problem.micro_batches.begin(), problem.micro_batches.end(), [&](Range r) {
    return std::max(r.begin, first) < std::min(r.end, last);
  });
}

std::vector<float> subtree(const Problem& problem, int first_lane, int end_lane) {
  std::vector<std::vector<float>> lanes;
  for (int lane = first_lane; lane < end_lane; ++lane) lanes.push_back(lane_sum(problem, lane));
  return tree(std::move(lanes));
}

/// The largest aligned blocks of lanes that cover [first, end): level and index of each.
std::vector<std::pair<int, int>> aligned_blocks(int first, int end) {
  std::vector<std::pair<int, int>> blocks;
  while (first < end) {
    int level = 0;
    while (first % (2 << level) == 0 && first + (2 << level) <= end) ++level;
    blocks.emplace_back(level, first >> level);
    first += 1 << level;
  }
  return blocks;
}

}  // namespace

TEST_CASE("autograd.lane_accumulator: a window's root is the tree over its lanes") {
  Dice dice{std::mt19937_64(11)};
  const Tensor like = Tensor::empty({kWidth});
  constexpr int kWindows = 4000;
  for (int i = 0; i < kWindows; ++i) {
    const Problem problem = draw(dice, true);
    CAPTURE(i);
    LaneAccumulator accumulator(problem.span);
    for (const Range batch : problem.micro_batches) add(accumulator, problem, batch, like);
    const auto& nodes = accumulator.finish(like);
    const int lanes = problem.span.lanes.count;
    REQUIRE(nodes.size() == (has_rows(problem, 0, lanes) ? 1 : 0));
    if (nodes.empty()) continue;
    CHECK((1 << nodes[0].level) == lanes);
    CHECK(nodes[0].index == 0);
    CHECK(equal_bits(nodes[0].partial, Tensor::from(subtree(problem, 0, lanes), {kWidth})));
  }
  MESSAGE("lane programs equal the literal tree: " << kWindows << " windows");
}

TEST_CASE("autograd.lane_accumulator: a rank keeps one node for each complete subtree") {
  Dice dice{std::mt19937_64(12)};
  const Tensor like = Tensor::empty({kWidth});
  constexpr int kRanks = 4000;
  int num_nodes = 0;
  for (int i = 0; i < kRanks; ++i) {
    const Problem problem = draw(dice, false);
    CAPTURE(i);
    LaneAccumulator accumulator(problem.span);
    for (const Range batch : problem.micro_batches) add(accumulator, problem, batch, like);
    std::map<std::pair<int, int>, Tensor> nodes;
    for (const auto& node : accumulator.finish(like))
      nodes[{node.level, node.index}] = node.partial;
    for (const auto& [level, index] :
         aligned_blocks(problem.span.first_lane, problem.span.end_lane)) {
      const int first = index << level, end = (index + 1) << level;
      const auto found = nodes.find({level, index});
      REQUIRE((found != nodes.end()) == has_rows(problem, first, end));
      if (found == nodes.end()) continue;
      CHECK(equal_bits(found->second, Tensor::from(subtree(problem, first, end), {kWidth})));
      nodes.erase(found);
      ++num_nodes;
    }
    CHECK(nodes.empty());
  }
  MESSAGE("ranks keep one node for each complete subtree: " << num_nodes << " nodes of " << kRanks
                                                            << " ranks");
}

TEST_CASE("autograd.lane_accumulator: at most log2(L) + 1 buffers live between micro-batches") {
  constexpr std::int64_t kElements = 4096;
  const Tensor like = Tensor::empty({kElements});
  const Tensor row = Tensor::ones({1, kElements});
  for (const int lanes : {1, 2, 4, 8, 16, 32}) {
    for (const std::int64_t samples_per_lane : {1, 2}) {
      const std::int64_t size = lanes * samples_per_lane;
      WindowSpan span{{.nominal_size = size, .count = lanes}, size, 0, lanes};
      const std::int64_t before = cpu_memory_stats().allocated_bytes;
      LaneAccumulator accumulator(span);
      std::int64_t most = 0;
      for (std::int64_t i = 0; i < size; ++i) {
        {
          LaneTarget target = accumulator.plan(i, i + 1, 1, like);
          const std::vector<float*> buffers = target.pointers<float>();
          kernels::launch_cpu(kernels::LinearBiasGrad<float>{
              {row.data<float>(), 1, kElements, kElements, 1}, target.program(), buffers});
        }
        const std::int64_t bytes = cpu_memory_stats().allocated_bytes - before;
        most = std::max(most, bytes / (kElements * size_of(DType::float32)));
      }
      CAPTURE(lanes);
      CAPTURE(samples_per_lane);
      // With one sample per lane no lane is open between micro-batches.
      const int depth = std::countr_zero(static_cast<unsigned>(lanes));
      CHECK(most == (samples_per_lane == 1 ? std::max(depth, 1) : depth + 1));
      CHECK(accumulator.finish(like).size() == 1);
      CHECK(cpu_memory_stats().allocated_bytes - before < 2 * kElements * 4);
    }
  }
}

TEST_CASE("autograd.lane_accumulator: 32768 lanes merge within one micro-batch") {
  constexpr std::int64_t kLanes = 1 << 15;
  WindowSpan span{{.nominal_size = kLanes, .count = kLanes}, kLanes, 0, kLanes};
  Problem problem{span, 1, Tensor::ones({kLanes, kWidth}), {{0, kLanes}}};
  const Tensor like = Tensor::empty({kWidth});
  LaneAccumulator accumulator(span);
  add(accumulator, problem, {0, kLanes}, like);
  const auto& nodes = accumulator.finish(like);
  REQUIRE(nodes.size() == 1);
  CHECK(nodes[0].partial.to_vector<float>() == std::vector<float>(kWidth, kLanes));
}

TEST_CASE("autograd.lane_accumulator: closing turns -0 into +0, a plain chain keeps it") {
  const Tensor tiny = Tensor::of<float>({{-1e-30F}});
  const Tensor x = Tensor::of<float>({{1e-30F}});
  const auto run = [&](LaneTarget target) {
    const std::vector<float*> buffers = target.pointers<float>();
    kernels::launch_cpu(kernels::LinearWeightGrad<float>{{tiny.data<float>(), 1, 1, 1, 1},
                                                         {x.data<float>(), 1, 1, 1, 1},
                                                         target.program(),
                                                         buffers});
  };
  const Tensor like = Tensor::empty({1, 1});
  LaneAccumulator accumulator({{.nominal_size = 1, .count = 1}, 1, 0, 1});
  run(accumulator.plan(0, 1, 1, like));
  CHECK(!std::signbit(accumulator.finish(like)[0].partial.item<float>()));
  Tensor plain = Tensor::empty({1, 1});
  run(LaneTarget::chain(plain, false, 1));
  CHECK(std::signbit(plain.item<float>()));
}

TEST_CASE("autograd.lane_accumulator: a rank with gaps merges only what it owns") {
  // Lanes 0, 1, 4 and 5 of 8, one position each.
  const auto runs =
      std::make_shared<const std::vector<LaneRun>>(std::vector<LaneRun>{{0, 2}, {4, 6}});
  const WindowSpan span{.lanes = {.nominal_size = 8, .count = 8},
                        .size = 8,
                        .first_lane = 0,
                        .end_lane = 6,
                        .runs = runs};
  CHECK(span.owns(0, 2));
  CHECK(span.owns(4, 6));
  CHECK_FALSE(span.owns(1, 3));
  CHECK_FALSE(span.owns(2, 4));
  CHECK_FALSE(span.owns(0, 6));
  CHECK_FALSE(span.owns(5, 8));

  const Tensor like = Tensor::empty({1});
  LaneAccumulator accumulator(span);
  for (const std::int64_t position : {0, 1, 4, 5}) {
    LaneTarget target = accumulator.plan(position, position + 1, 1, like);
    const float value = static_cast<float>(position + 1);
    const std::vector<float*> buffers = target.pointers<float>();
    kernels::launch_cpu(
        kernels::LinearBiasGrad<float>{{&value, 1, 1, 1, 1}, target.program(), buffers});
  }
  const std::vector<TreeNode>& nodes = accumulator.finish(like);
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0].level == 1);
  CHECK(nodes[0].index == 0);
  CHECK(nodes[0].partial.item<float>() == 3);
  CHECK(nodes[1].level == 1);
  CHECK(nodes[1].index == 2);
  CHECK(nodes[1].partial.item<float>() == 11);
}
