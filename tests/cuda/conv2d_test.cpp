// Convolutions on CUDA against the CPU's, in every bit, under every schedule.
#include "accrue/kernels/conv2d.h"

#include "accrue/core/config.h"
#include "accrue/core/error.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/kernels/lane_reference.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/simt_check.h"

#include <memory>

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

constexpr bool kSlow = kAddressSanitizer || kThreadSanitizer;

SlidingAxis axis_of(std::int64_t in, const SlidingAxis& window) {
  SlidingAxis axis = window;
  axis.in = in;
  axis.out = (in + 2 * axis.padding - axis.dilation * (axis.size - 1) - 1) / axis.stride + 1;
  return axis;
}

SlidingAxis random_axis(std::int64_t in, Dice& dice) {
  return axis_of(in,
                 {0, 0, 1 + dice.below(3), 1 + dice.below(3), dice.below(3), 1 + dice.below(2)});
}

ConvShape random_shape(Dice& dice) {
  const auto groups = dice.pick<std::int64_t>({1, 1, 2, 3});
  return {dice.below(4),
          groups * (1 + dice.below(3)),
          groups * dice.pick<std::int64_t>({1, 2, 5}),
          groups,
          {random_axis(5 + dice.below(6), dice), random_axis(5 + dice.below(9), dice)}};
}

/// What a convolution reads, and how much it writes.
struct Convolution {
  ConvShape shape;
  std::vector<float> x, w, bias, dy;

  Convolution(const ConvShape& sizes, Dice& dice) : shape(sizes) {
    const auto draw = [&](std::vector<float>& values, std::int64_t count) {
      values.resize(static_cast<std::size_t>(count));
      for (float& value : values) value = dice.value();
    };
    draw(x, shape.samples * shape.in_channels * shape.sliding.inputs());
    draw(w, shape.out_channels * shape.depth());
    draw(bias, shape.out_channels);
    draw(dy, shape.rows() * shape.out_channels);
  }
};

std::vector<float> unwritten(std::size_t count) { return DeviceFloats::unwritten(count); }

/// As examine(), or once where four schedules take too long.
template <class Launch>
std::string examine_by(bool all_schedules, std::vector<Output> outputs, const Launch& launch) {
  if (all_schedules) return examine(outputs, launch);
  launch();
  std::string fault;
  for (Output& output : outputs) fault += check_array(output, output.array->bytes());
  return fault;
}

/// Both directions of data on both devices; "" if the bits agree.
std::string examine_data(const Convolution& conv,
                         std::size_t misalignment,
                         bool has_bias,
                         bool all = true) {
  DeviceFloats x(conv.x, misalignment), w(conv.w), bias(conv.bias), dy(conv.dy, misalignment);
  DeviceFloats y(unwritten(conv.dy.size()), misalignment), dx(unwritten(conv.x.size()));
  std::vector<float> wanted_y = unwritten(conv.dy.size()), wanted_dx = unwritten(conv.x.size());
  const float* const near = has_bias ? conv.bias.data() : nullptr;
  launch_cpu(Conv2dForward<float>{conv.shape, conv.x.data(), conv.w.data(), near, wanted_y.data()});
  launch_cpu(Conv2dInputGrad<float>{conv.shape, conv.dy.data(), conv.w.data(), wanted_dx.data()});
  return examine_by(all, {{"y", &y, wanted_y}, {"dx", &dx, wanted_dx}}, [&] {
    const float* const far = has_bias ? bias.data() : nullptr;
    launch_cuda(Conv2dForward<float>{conv.shape, x.data(), w.data(), far, y.data()}, {});
    launch_cuda(Conv2dInputGrad<float>{conv.shape, dy.data(), w.data(), dx.data()}, {});
  });
}

/// Buffers of one parameter on both devices.
struct Buffers {
  std::vector<std::vector<float>> wanted;
  std::vector<std::unique_ptr<DeviceFloats>> arrays;
  std::vector<float*> near, far;

  Buffers(const Program& program, std::int64_t size, Dice& dice) {
    for (const bool loaded : program.loaded) {
      std::vector<float> values = unwritten(static_cast<std::size_t>(size));
      for (float& value : values) value = loaded ? dice.value() : value;
      arrays.push_back(std::make_unique<DeviceFloats>(values));
      far.push_back(arrays.back()->data());
      wanted.push_back(values);
    }
    for (auto& values : wanted) near.push_back(values.data());
  }
  void expect(const char* name, std::vector<Output>& outputs) {
    for (std::size_t i = 0; i < arrays.size(); ++i)
      outputs.push_back({name, arrays[i].get(), wanted[i]});
  }
};

/// Gradients of both parameters on both devices; "" if the bits agree.
std::string examine_parameters(const Convolution& conv,
                               const Program& program,
                               Dice& dice,
                               bool all = true) {
  const ConvShape& shape = conv.shape;
  DeviceFloats x(conv.x), dy(conv.dy);
  Buffers weight(program, shape.out_channels * shape.depth(), dice);
  Buffers bias(program, shape.out_channels, dice);
  launch_cpu(
      Conv2dWeightGrad<float>{shape, conv.dy.data(), conv.x.data(), program.view(), weight.near});
  launch_cpu(Conv2dBiasGrad<float>{shape, conv.dy.data(), program.view(), bias.near});
  std::vector<Output> outputs;
  weight.expect("weight buffer", outputs);
  bias.expect("bias buffer", outputs);
  return examine_by(all, outputs, [&] {
    launch_cuda(Conv2dWeightGrad<float>{shape, dy.data(), x.data(), program.view(), weight.far},
                {});
    launch_cuda(Conv2dBiasGrad<float>{shape, dy.data(), program.view(), bias.far}, {});
  });
}

}  // namespace

TEST_CASE("cuda.conv2d: the forward pass and the gradient of the image have the CPU's bits") {
  Dice dice{std::mt19937(1)};
  const int num_cases = kSlow ? 10 : 60;
  for (int i = 0; i < num_cases; ++i) {
    Convolution conv(random_shape(dice), dice);
    if (i % 4 == 0) conv.w[0] = std::numeric_limits<float>::infinity();  // not into other taps
    CAPTURE(i);
    CHECK(examine_data(conv, static_cast<std::size_t>(i % 4) * 4, i % 3 > 0) == "");
  }
  MESSAGE(num_cases, " convolutions under ", all_schedules().size(), " schedules");
}

TEST_CASE("cuda.conv2d: gradients of parameters run lane programs with the CPU's bits") {
  Dice dice{std::mt19937(2)};
  const int num_cases = kSlow ? 10 : 80;
  std::int64_t instructions = 0;
  for (int i = 0; i < num_cases; ++i) {
    Convolution conv(random_shape(dice), dice);
    const std::int64_t pixels = conv.shape.sliding.outputs(), rows = conv.shape.rows();
    for (std::int64_t row = 0; row < rows; row += 3) {  // dead rows, an infinity in the image
      for (std::int64_t o = 0; o < conv.shape.out_channels; ++o) {
        const std::int64_t at = (row / pixels * conv.shape.out_channels + o) * pixels;
        conv.dy[static_cast<std::size_t>(at + row % pixels)] = dice.once_in(2) ? 0.0f : -0.0f;
      }
    }
    if (!conv.x.empty() && i % 2 == 0) conv.x[0] = std::numeric_limits<float>::infinity();
    const Program program = i % 2 == 0
                                ? random_program(rows, dice)
                                : lane_tree({rows / 5, rows / 5, rows / 2, rows}, i % 4 == 1);
    CAPTURE(i);
    CHECK(examine_parameters(conv, program, dice) == "");
    instructions += std::ssize(program.instructions);
  }
  MESSAGE(num_cases,
          " programs, ",
          instructions,
          " instructions under ",
          all_schedules().size(),
          " schedules");
}

TEST_CASE("cuda.conv2d: images that need several blocks of patches have the CPU's bits") {
  if (kSlow) return;
  Dice dice{std::mt19937(3)};
  // 8 Mi elements of patches hold 21 lines of 24 pixels, of 27; then two samples of three.
  const SlidingAxis seven = axis_of(24, {0, 0, 7, 1, 3, 1});
  for (const auto& [samples, lines] : {std::pair<std::int64_t, std::int64_t>{1, 27}, {3, 10}}) {
    const Convolution conv({samples, 334, 2, 1, {axis_of(lines, {0, 0, 7, 1, 3, 1}), seven}}, dice);
    const std::int64_t rows = conv.shape.rows();
    CAPTURE(lines);
    const Program program = lane_tree({rows / 4, rows / 2, rows - 9, rows}, true);
    CHECK(examine_parameters(conv, program, dice, false) == "");
    CHECK(examine_data(conv, 0, true, false) == "");
  }
}

TEST_CASE("cuda.conv2d: pixels behind the first 2^31 elements of an image are seen") {
  const SlidingAxis h = axis_of((1 << 15) + 1, {0, 0, 1, 1 << 14, 0, 1});
  const SlidingAxis w = axis_of(1 << 16, {0, 0, 1, (1 << 15) - 1, 0, 1});
  const ConvShape shape{1, 1, 1, 1, {h, w}};
  const simt::GuardedMemory image(
      static_cast<std::size_t>(shape.sliding.inputs()) * 4, 0, simt::GuardedMemory::kWideFence);
  auto* const x = reinterpret_cast<float*>(image.data());
  x[(std::int64_t{1} << 31) + 2 * w.stride] = 3.0f;
  const std::vector<float> weight = {2.0f};
  DeviceFloats device_weight(weight), y(unwritten(9)), dw(unwritten(1));
  const std::vector<float> ones(9, 1.0f);
  DeviceFloats dy(ones);
  const LaneInstruction chain[] = {
      LaneInstruction::zero(), LaneInstruction::chain(0, 9), LaneInstruction::store(0)};
  float* const buffers[] = {dw.data()};
  launch_cuda(Conv2dForward<float>{shape, x, device_weight.data(), nullptr, y.data()}, {});
  launch_cuda(Conv2dWeightGrad<float>{shape, dy.data(), x, {chain, 1, 0}, buffers}, {});
  CHECK(y.values() == std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 6});
  CHECK(dw.values() == std::vector<float>{3});
}

TEST_CASE("cuda.conv2d: programs out of range are refused as on the CPU") {
  float data[16] = {};
  float* const buffers[] = {data};
  const ConvShape shape{1, 1, 1, 1, {{2, 2}, {2, 2}}};
  const LaneInstruction chain = LaneInstruction::chain(0, 5);
  const LaneProgram program{{&chain, 1}, 1, 0};
  CHECK_THROWS_AS(launch_cuda(Conv2dWeightGrad<float>{shape, data, data, program, buffers}, {}),
                  IndexError);
  CHECK_THROWS_AS(launch_cuda(Conv2dBiasGrad<float>{shape, data, program, buffers}, {}),
                  IndexError);
}
