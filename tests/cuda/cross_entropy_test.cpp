// Cross-entropy on CUDA against the CPU's, in every bit, under every schedule.
#include "accrue/core/config.h"
#include "accrue/core/error.h"
#include "accrue/kernels/cuda/fault.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/simt_check.h"

#include <cmath>
#include <limits>
#include <random>

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// A problem whose rows lie `gap` elements apart, with every kind of target.
struct Problem {
  std::int64_t rows, cols, gap;
  double smoothing;
  bool weighted;
  std::vector<float> logits, weights, dloss;
  DeviceVector<std::int64_t> target;

  Problem(std::int64_t num_rows, std::int64_t num_cols, double smooth, bool has_weights)
      : rows(num_rows),
        cols(num_cols),
        gap(num_cols % 3),
        smoothing(smooth),
        weighted(has_weights) {
    std::mt19937 engine(static_cast<unsigned>(rows * 1000 + cols));
    const auto number = [&] {
      return static_cast<float>(static_cast<double>(engine()) / 0x1p29 - 4);
    };
    logits.resize(static_cast<std::size_t>(rows * (cols + gap)));
    for (float& x : logits) x = engine() % 40 == 0 ? -kInf : 20 * number();
    for (std::int64_t c = 0; c < cols; ++c)
      weights.push_back(c % 5 == 1 ? 0.0f : std::abs(number()));
    for (std::int64_t n = 0; n < rows; ++n) {
      dloss.push_back(number());
      target.push_back(n % 4 == 3 ? -100 : static_cast<std::int64_t>(engine()) % cols);
    }
  }

  CrossEntropyInputs<float> inputs(const float* x, const float* w) const {
    return {.logits = {x, rows, cols, cols + gap, 1},
            .target = target.data(),
            .class_weights = weighted ? w : nullptr,
            .label_smoothing = smoothing};
  }
};

/// Losses and gradients on both devices; "" if the bits agree.
std::string examine_problem(const Problem& p) {
  const auto unwritten = [](std::int64_t count) {
    return DeviceFloats::unwritten(static_cast<std::size_t>(count));
  };
  const auto gradient = [&](float* data) {
    return Matrix<float>{data, p.rows, p.cols, p.cols + p.gap, 1};
  };
  std::vector<float> loss(unwritten(p.rows)), max = loss, sum = loss, dx = p.logits,
                                              in_place = p.logits;
  const auto in = p.inputs(p.logits.data(), p.weights.data());
  launch_cpu(CrossEntropyForward<float>{in, loss.data(), max.data(), sum.data()});
  launch_cpu(CrossEntropyBackward<float>{
      in, max.data(), sum.data(), p.dloss.data(), 1, gradient(dx.data())});
  for (std::int64_t n = 0; n < p.rows; ++n) {  // not written for ignored rows
    if (p.target[static_cast<std::size_t>(n)] == -100) max[static_cast<std::size_t>(n)] = 0;
  }
  DeviceFloats logits(p.logits), weights(p.weights), dloss(p.dloss), out_loss(unwritten(p.rows)),
      out_max(std::vector<float>(loss.size())), out_sum(out_max.values()), out_dx(p.logits, 4),
      device_in_place(p.logits);
  return examine(
      {{"loss", &out_loss, loss}, {"dx", &out_dx, dx}, {"dx in place", &device_in_place, dx}}, [&] {
        const auto device_in = p.inputs(logits.data(), weights.data());
        launch_cuda(
            CrossEntropyForward<float>{device_in, out_loss.data(), out_max.data(), out_sum.data()},
            {});
        CrossEntropyBackward<float> backward{
            device_in, out_max.data(), out_sum.data(), dloss.data(), 1, gradient(out_dx.data())};
        launch_cuda(backward, {});
        backward.in.logits.data = device_in_place.data();
        backward.dlogits.data = device_in_place.data();
        launch_cuda(backward, {});
      });
}

}  // namespace

TEST_CASE("cuda.cross_entropy: losses and gradients have the CPU's bits") {
  // From 1,025 on a block takes a row, from 12,222 on a larger block; from 58,046 on the row does
  // not fit into shared memory.
  int num_problems = 0;
  for (const std::int64_t cols : {1, 2, 10, 31, 33, 1000, 1024, 1025, 3000, 12222, 50257, 58046}) {
    for (const double smoothing : {0.0, 0.1, 1.0}) {
      for (const bool weighted : {false, true}) {
        const bool is_quick = kAddressSanitizer || kThreadSanitizer;
        if (cols > 3000 && is_quick && !(weighted && smoothing == 0.1)) continue;
        const Problem p(cols <= 1000 ? 11 : cols <= 3000 ? 4 : 2, cols, smoothing, weighted);
        CAPTURE(cols);
        CAPTURE(smoothing);
        CAPTURE(weighted);
        CHECK(examine_problem(p) == "");
        ++num_problems;
      }
    }
  }
  MESSAGE(num_problems, " problems under ", all_schedules().size(), " schedules");
}

TEST_CASE(
    "cuda.cross_entropy: a target that is no class is noted, makes its row NaN and reads nothing") {
  Problem p(4, 40, 0.1, true);
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{40}, INT64_MAX, INT64_MIN}) {
    p.target = {0, bad, -100, 39};
    DeviceFloats logits(p.logits), weights(p.weights), loss(DeviceFloats::unwritten(4)),
        max(p.dloss), sum(p.dloss), dloss(p.dloss), dx(p.logits);
    const auto in = p.inputs(logits.data(), weights.data());
    DeviceVector<int> fault(1);
    const cuda::Stream stream{nullptr, fault.data()};
    launch_cuda(CrossEntropyForward<float>{in, loss.data(), max.data(), sum.data()}, stream);
    CHECK_THROWS_AS(cuda::throw_fault(fault[0]), IndexError);
    fault[0] = 0;
    launch_cuda(
        CrossEntropyBackward<float>{
            in, max.data(), sum.data(), dloss.data(), 0, {dx.data(), 4, 40, 40 + p.gap, 1}},
        stream);
    CHECK_THROWS_AS(cuda::throw_fault(fault[0]), IndexError);
    CHECK(std::isnan(loss.values()[1]));
    CHECK(loss.values()[2] == 0.0f);
    CHECK(std::isnan(dx.values()[static_cast<std::size_t>(40 + p.gap)]));
    CHECK(logits.is_intact());
  }
}

TEST_CASE("cuda.cross_entropy: rows behind the first 2^31 elements are right") {
  constexpr std::int64_t kCols = 1 << 16, kRows = (1 << 15) + 2;
  const simt::GuardedMemory x(kRows * kCols * 4, 0, simt::GuardedMemory::kWideFence);
  const DeviceVector<std::int64_t> target(kRows, 5);
  DeviceVector<float> loss(kRows), max(kRows), sum(kRows);
  const Matrix<float> logits = row_major(reinterpret_cast<float*>(x.data()), kRows, kCols);
  const CrossEntropyInputs<float> in{.logits = logits, .target = target.data()};
  const DeviceVector<float> one = {1};
  simt::run_options() = {.block_begin = kRows - 1};
  launch_cuda(CrossEntropyForward<float>{in, loss.data(), max.data(), sum.data()}, {});
  launch_cuda(CrossEntropyBackward<float>{in, max.data(), sum.data(), one.data(), 0, logits}, {});
  simt::run_options() = {};
  CHECK(loss.back() == doctest::Approx(16 * std::log(2.0)));
  CHECK(logits(kRows - 1, 5) == 0x1p-16f - 1);
  CHECK(logits(kRows - 1, kCols - 1) == 0x1p-16f);
  CHECK(loss.front() == 0);
}
