// Convolutions of images that take several blocks of patches, against linear layers on the patches.
#include "accrue/kernels/conv2d.h"

#include "accrue/core/error.h"
#include "accrue/kernels/linear.h"
#include "accrue/tests/kernels/lane_reference.h"
#include "accrue/tests/support/doctest.h"

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

SlidingAxis random_axis(std::int64_t in, Dice& dice) {
  SlidingAxis axis{in, 0, 1 + dice.below(3), 1 + dice.below(2), dice.below(3), 1 + dice.below(2)};
  axis.out = (in + 2 * axis.padding - axis.dilation * (axis.size - 1) - 1) / axis.stride + 1;
  return axis;
}

/// A convolution of one group, whose image takes up to ten blocks.
ConvShape random_shape(Dice& dice) {
  ConvShape shape{1 + dice.below(3), 1 + dice.below(9), 1 + dice.below(20), 1, {}};
  shape.sliding.h = random_axis(40 + dice.below(40), dice);
  shape.sliding.w = random_axis(40 + dice.below(80), dice);
  if (dice.once_in(2)) {  // lines as long as the image's
    shape.sliding.w = {shape.sliding.w.in, shape.sliding.w.in, 3, 1, 1, 1};
    shape.sliding.h.stride = 1;
    shape.sliding.h.out = shape.sliding.h.in + 2 * shape.sliding.h.padding -
                          shape.sliding.h.dilation * (shape.sliding.h.size - 1);
  }
  return shape;
}

std::vector<float> values(std::int64_t count, Dice& dice) {
  std::vector<float> result(static_cast<std::size_t>(count));
  for (float& value : result) value = dice.value();
  return result;
}

/// The linear layer that a convolution is: a patch per row.
struct Rows {
  std::vector<float> patches, dy;
  std::int64_t count = 0, depth = 0, outputs = 0;

  Rows(const ConvShape& shape, const std::vector<float>& x, const std::vector<float>& gradient)
      : count(shape.rows()), depth(shape.depth()), outputs(shape.out_channels) {
    const SlidingAxis &h = shape.sliding.h, &w = shape.sliding.w;
    const std::int64_t pixels = shape.sliding.outputs();
    for (std::int64_t row = 0; row < count; ++row) {
      const std::int64_t n = row / pixels, pixel = row % pixels;
      for (std::int64_t e = 0; e < depth; ++e) {
        const std::int64_t c = e / shape.sliding.taps();
        const std::int64_t i = pixel / w.out * h.stride + h.offset(e / w.size % h.size);
        const std::int64_t j = pixel % w.out * w.stride + w.offset(e % w.size);
        const bool inside = i >= 0 && i < h.in && j >= 0 && j < w.in;
        const std::int64_t at = ((n * shape.in_channels + c) * h.in + i) * w.in + j;
        patches.push_back(inside ? x[static_cast<std::size_t>(at)] : 0.0f);
      }
      for (std::int64_t o = 0; o < outputs; ++o) {
        dy.push_back(gradient[static_cast<std::size_t>((n * outputs + o) * pixels + pixel)]);
      }
    }
  }
  Matrix<const float> x_view() const { return row_major(patches.data(), count, depth); }
  Matrix<const float> dy_view() const { return row_major(dy.data(), count, outputs); }
};

std::int64_t count_faults(const std::vector<float>& got, const std::vector<float>& wanted) {
  std::int64_t faults = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    faults += canonical_bits(got[i]) != canonical_bits(wanted[i]);
  }
  return faults;
}

void shuffle_settings(Dice& dice) {
  set_isa(dice.pick(all_isas()));
  set_num_threads(static_cast<int>(1 + dice.below(3)));
}

/// Buffers that hold what a program reads, and their addresses.
struct Buffers {
  std::vector<std::vector<float>> storage;
  std::vector<float*> pointers;

  Buffers(const Program& program, std::int64_t size, unsigned seed) {
    Dice dice{std::mt19937(seed)};
    for (const bool loaded : program.loaded) {
      storage.push_back(values(size, dice));
      if (!loaded) std::fill(storage.back().begin(), storage.back().end(), kNan);
    }
    for (auto& buffer : storage) pointers.push_back(buffer.data());
  }
};

std::int64_t count_faults(const Buffers& got, const Buffers& wanted) {
  std::int64_t faults = 0;
  for (std::size_t i = 0; i < got.storage.size(); ++i) {
    faults += count_faults(got.storage[i], wanted.storage[i]);
  }
  return faults;
}

}  // namespace

TEST_CASE("kernels.conv2d: the forward pass equals a linear layer on patches in every bit") {
  const KeepSettings keep;
  Dice dice{std::mt19937(1)};
  constexpr int kCases = 60;
  for (int i = 0; i < kCases; ++i) {
    shuffle_settings(dice);
    const ConvShape shape = random_shape(dice);
    const auto x = values(shape.samples * shape.in_channels * shape.sliding.inputs(), dice);
    const auto w = values(shape.out_channels * shape.depth(), dice);
    const auto bias = values(shape.out_channels, dice);
    std::vector<float> y(static_cast<std::size_t>(shape.rows() * shape.out_channels), kNan);
    launch_cpu(Conv2dForward<float>{shape, x.data(), w.data(), bias.data(), y.data()});
    const Rows rows(shape, x, y);
    std::vector<float> wanted(y.size());
    launch_cpu(LinearForward<float>{rows.x_view(),
                                    row_major(w.data(), shape.out_channels, shape.depth()),
                                    bias.data(),
                                    row_major(wanted.data(), shape.rows(), shape.out_channels)});
    CAPTURE(i);
    CHECK(count_faults(rows.dy, wanted) == 0);
  }
  MESSAGE(kCases, " convolutions");
}

TEST_CASE("kernels.conv2d: gradients of parameters are those of a linear layer, for any program") {
  const KeepSettings keep;
  Dice dice{std::mt19937(2)};
  constexpr int kCases = 120;
  std::int64_t instructions = 0;
  for (int i = 0; i < kCases; ++i) {
    shuffle_settings(dice);
    const ConvShape shape = random_shape(dice);
    const auto x = values(shape.samples * shape.in_channels * shape.sliding.inputs(), dice);
    auto dy = values(shape.rows() * shape.out_channels, dice);
    const std::int64_t zeros = dice.once_in(2) ? 2 : 1;
    for (float& value : dy) value = dice.below(zeros) > 0 ? 0.0f : value;
    const Rows rows(shape, x, dy);
    const Program program = random_program(shape.rows(), dice);
    const std::int64_t size = shape.out_channels * shape.depth();
    Buffers weight(program, size, 7), bias(program, shape.out_channels, 8);
    launch_cpu(
        Conv2dWeightGrad<float>{shape, dy.data(), x.data(), program.view(), weight.pointers});
    launch_cpu(Conv2dBiasGrad<float>{shape, dy.data(), program.view(), bias.pointers});
    Buffers wanted_weight(program, size, 7), wanted_bias(program, shape.out_channels, 8);
    launch_cpu(LinearWeightGrad<float>{
        rows.dy_view(), rows.x_view(), program.view(), wanted_weight.pointers});
    launch_cpu(LinearBiasGrad<float>{rows.dy_view(), program.view(), wanted_bias.pointers});
    CAPTURE(i);
    CHECK(count_faults(weight, wanted_weight) == 0);
    CHECK(count_faults(bias, wanted_bias) == 0);
    instructions += std::ssize(program.instructions);
  }
  MESSAGE(kCases, " programs, ", instructions, " instructions");
}

TEST_CASE("kernels.conv2d: the gradient of the image does not depend on threads or CPU path") {
  const KeepSettings keep;
  Dice dice{std::mt19937(3)};
  constexpr int kCases = 30;
  for (int i = 0; i < kCases; ++i) {
    ConvShape shape = random_shape(dice);
    shape.in_channels = 6;
    shape.out_channels = 10;
    shape.groups = 1 + static_cast<int>(dice.once_in(2));
    const auto dy = values(shape.rows() * shape.out_channels, dice);
    const auto w = values(shape.out_channels * shape.depth(), dice);
    std::vector<float> first;
    for (const Isa isa : all_isas()) {
      for (const int threads : {1, 2, 3}) {
        set_isa(isa);
        set_num_threads(threads);
        const std::int64_t size = shape.samples * shape.in_channels * shape.sliding.inputs();
        std::vector<float> dx(static_cast<std::size_t>(size), kNan);
        launch_cpu(Conv2dInputGrad<float>{shape, dy.data(), w.data(), dx.data()});
        if (first.empty()) first = dx;
        CHECK(count_faults(dx, first) == 0);
      }
    }
  }
  MESSAGE(kCases, " convolutions");
}

TEST_CASE("kernels.conv2d: programs out of range are refused") {
  float data[16] = {};
  float* const buffers[] = {data};
  const ConvShape shape{1, 1, 1, 1, {{2, 2}, {2, 2}}};
  const LaneInstruction chain = LaneInstruction::chain(0, 5);
  const LaneProgram program{{&chain, 1}, 1, 0};
  CHECK_THROWS_WITH_AS(
      launch_cpu(Conv2dWeightGrad<float>{shape, data, data, program, buffers}),
      "[conv2d_weight_grad] chains of the lane program must lie in [0, 4], got [0, 5); rows are "
      "those of this micro-batch",
      IndexError);
  CHECK_THROWS_AS(launch_cpu(Conv2dBiasGrad<float>{shape, data, program, buffers}), IndexError);
}
