// Lane accumulators on single numbers: any cut into micro-batches, any share of the lanes.
#include "accrue/autograd/lane_accumulator.h"

#include "accrue/kernels/linear.h"
#include "accrue/tests/support/doctest.h"

#include <algorithm>
#include <bit>
#include <random>

using namespace accrue;

namespace {

/// One window of random numbers, `rows` per position, on the rank that owns some of the lanes.
struct Case {
  WindowSpan span;
  std::int64_t rows;
  std::vector<float> values;

  std::int64_t begin() const { return std::min(span.lanes.begin(span.first_lane), span.size); }
  std::int64_t end() const { return std::min(span.lanes.begin(span.end_lane), span.size); }

  /// Contract 5 and 6 for the lanes of a tree node.
  float expected(int level, int index) const {
    if (level > 0) return expected(level - 1, 2 * index) + expected(level - 1, 2 * index + 1);
    const std::int64_t last = std::min(span.lanes.begin(index + 1), span.size) * rows;
    float acc = 0;
    for (std::int64_t i = span.lanes.begin(index) * rows; i < last; ++i) {
      acc += values[static_cast<std::size_t>(i)];
    }
    return acc + 0.0f;
  }
};

Case random_case(std::mt19937& random) {
  const auto up_to = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % (n + 1)); };
  Case c{};
  c.span.lanes = {1 + up_to(39), 1 << up_to(4)};
  c.span.size = 1 + up_to(c.span.lanes.nominal_size - 1);
  const int lanes = c.span.lanes.count, world = 1 + static_cast<int>(up_to(lanes - 1));
  const int rank = static_cast<int>(up_to(world - 1));
  c.span.first_lane = rank * lanes / world;  // contiguous dealing
  c.span.end_lane = (rank + 1) * lanes / world;
  c.rows = 1 + up_to(2);
  for (std::int64_t i = 0; i < c.span.size * c.rows; ++i) {
    c.values.push_back(static_cast<float>(random() % 2001) / 7.0f - 143.0f);
  }
  return c;
}

/// Adds the window in random micro-batches; returns the largest number of buffers a program named.
std::size_t add_window(const Case& c, LaneAccumulator& accumulator, std::mt19937& random) {
  const Tensor like = Tensor::zeros({1});
  std::size_t most = 0;
  for (std::int64_t begin = c.begin(); begin < c.end();) {
    const std::int64_t end = std::min<std::int64_t>(c.end(), begin + 1 + random() % 7);
    LaneTarget target = accumulator.plan(begin, end, c.rows, like);
    most = std::max(most, target.buffers.size());
    const std::vector<float*> buffers = target.pointers<float>();
    kernels::launch_cpu(kernels::LinearBiasGrad<float>{
        {c.values.data() + begin * c.rows, (end - begin) * c.rows, 1, 1, 1},
        target.program(),
        buffers});
    begin = end;
  }
  return most;
}

}  // namespace

TEST_CASE(
    "autograd.lane_accumulator: any micro-batches give the nodes of the aligned tree, in few "
    "buffers") {
  std::mt19937 random(7);
  constexpr int kCases = 3000;
  for (int i = 0; i < kCases; ++i) {
    const Case c = random_case(random);
    for (int repeat = 0; repeat < 2; ++repeat) {
      CAPTURE(i);
      LaneAccumulator accumulator(c.span);
      const std::size_t most = add_window(c, accumulator, random);
      CHECK(most <= static_cast<std::size_t>(std::bit_width(unsigned(c.span.lanes.count))));
      const auto& nodes = accumulator.finish(Tensor::zeros({1}));
      int covered = c.span.first_lane;
      for (const auto& [level, index, partial] : nodes) {
        CHECK((index << level) >= covered);
        covered = (index + 1) << level;
        CHECK(partial.item<float>() == c.expected(level, index));
      }
      CHECK(covered <= c.span.end_lane);
    }
  }
  MESSAGE(kCases << " windows, each in two random cuts");
}

TEST_CASE("autograd.lane_accumulator: a rank that owns all lanes ends with the root alone") {
  std::mt19937 random(8);
  for (int i = 0; i < 300; ++i) {
    Case c = random_case(random);
    c.span.first_lane = 0;
    c.span.end_lane = c.span.lanes.count;
    LaneAccumulator accumulator(c.span);
    add_window(c, accumulator, random);
    const auto& nodes = accumulator.finish(Tensor::zeros({1}));
    REQUIRE(nodes.size() == 1);
    CHECK((1 << nodes[0].level) == c.span.lanes.count);
    CHECK(nodes[0].partial.item<float>() == c.expected(nodes[0].level, 0));
  }
}
