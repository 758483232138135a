// Pooling on CUDA against the CPU's, in every bit, under every schedule.
#include "accrue/kernels/pool2d.h"

#include "accrue/core/config.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/kernels/lane_reference.h"
#include "accrue/tests/support/device_tensor.h"
#include "accrue/tests/support/doctest.h"

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

/// Also windows that leave the image below, as ceil_mode makes them.
SlidingAxis random_axis(Dice& dice, bool dilated) {
  SlidingAxis axis{1 + dice.below(9), 0, 1 + dice.below(4), 1 + dice.below(3), 0, 1};
  axis.padding = dice.below(axis.size / 2 + 1);
  if (dilated) axis.dilation = 1 + dice.below(2);
  const std::int64_t reach = axis.dilation * (axis.size - 1) + 1;
  const std::int64_t room = std::max<std::int64_t>(axis.in + 2 * axis.padding - reach, 0);
  axis.out = (room + dice.below(axis.stride)) / axis.stride + 1;
  if ((axis.out - 1) * axis.stride >= axis.in + axis.padding) --axis.out;
  return axis;
}

PoolShape random_shape(Dice& dice, bool dilated) {
  const std::int64_t planes = dice.below(4);
  return {planes, {random_axis(dice, dilated), random_axis(dice, dilated)}};
}

/// Many equal values, zeros of both signs, NaNs.
std::vector<float> few_values(std::int64_t count, Dice& dice) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = dice.pick<float>({-1.0f, -0.0f, 0.0f, 1.0f, 2.0f});
    if (dice.once_in(30)) value = NAN;
    if (dice.once_in(30)) value = -HUGE_VALF;
  }
  return values;
}

std::vector<float> any_values(std::int64_t count, Dice& dice) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = dice.value();
  return values;
}

std::vector<float> unwritten(std::size_t count) { return DeviceFloats::unwritten(count); }

constexpr int kCases = kAddressSanitizer || kThreadSanitizer ? 20 : 100;

}  // namespace

TEST_CASE("cuda.pool2d: maxima, their places and the gradient have the CPU's bits") {
  Dice dice{std::mt19937(1)};
  for (int i = 0; i < kCases; ++i) {
    const PoolShape shape = random_shape(dice, true);
    const auto x = few_values(shape.planes * shape.sliding.inputs(), dice);
    const auto dy = any_values(shape.planes * shape.sliding.outputs(), dice);
    std::vector<float> y = unwritten(dy.size()), dx = unwritten(x.size());
    std::vector<std::int32_t> places(dy.size(), -7);
    DeviceFloats far_x(x), far_dy(dy), far_y(y), far_dx(dx);
    DeviceArray far_places(DType::int32, std::as_bytes(std::span(places)), 0);
    launch_cpu(MaxPool2d<float>{shape, x.data(), y.data(), places.data()});
    launch_cpu(MaxPool2dGrad<float>{shape, dy.data(), places.data(), dx.data()});
    CAPTURE(i);
    CHECK(examine({{"y", &far_y, y},
                   {"places", &far_places, std::as_bytes(std::span(places))},
                   {"dx", &far_dx, dx}},
                  [&] {
                    auto* const at = reinterpret_cast<std::int32_t*>(far_places.bytes().data());
                    launch_cuda(MaxPool2d<float>{shape, far_x.data(), far_y.data(), at}, {});
                    launch_cuda(MaxPool2dGrad<float>{shape, far_dy.data(), at, far_dx.data()}, {});
                  }) == "");
  }
  MESSAGE(kCases, " shapes under ", all_schedules().size(), " schedules");
}

TEST_CASE("cuda.pool2d: means and their gradient have the CPU's bits for every divisor") {
  Dice dice{std::mt19937(2)};
  for (int i = 0; i < kCases; ++i) {
    const PoolShape shape = random_shape(dice, false);
    const PoolDivisor divisor{i % 2 == 0, i % 5 == 0 ? -3 : 0};
    const auto x = any_values(shape.planes * shape.sliding.inputs(), dice);
    const auto dy = any_values(shape.planes * shape.sliding.outputs(), dice);
    std::vector<float> y = unwritten(dy.size()), dx = unwritten(x.size());
    DeviceFloats far_x(x), far_dy(dy), far_y(y), far_dx(dx);
    launch_cpu(AvgPool2d<float>{shape, divisor, x.data(), y.data()});
    launch_cpu(AvgPool2dGrad<float>{shape, divisor, dy.data(), dx.data()});
    CAPTURE(i);
    CHECK(examine({{"y", &far_y, y}, {"dx", &far_dx, dx}}, [&] {
            launch_cuda(AvgPool2d<float>{shape, divisor, far_x.data(), far_y.data()}, {});
            launch_cuda(AvgPool2dGrad<float>{shape, divisor, far_dy.data(), far_dx.data()}, {});
          }) == "");
  }
  MESSAGE(kCases, " shapes under ", all_schedules().size(), " schedules");
}

TEST_CASE("cuda.pool2d: planes behind the first 2^31 elements are pooled") {
  constexpr std::int64_t kPlanes = (std::int64_t{1} << 29) + 300, kLast = kPlanes - 1;
  const PoolShape shape{kPlanes, {{2, 2, 1}, {2, 2, 1}}};  // windows of one element
  const auto giant = [] {
    return simt::GuardedMemory(kPlanes * 16, 0, simt::GuardedMemory::kWideFence);
  };
  const simt::GuardedMemory from = giant(), to = giant(), places = giant(), back = giant();
  const auto floats = [](const simt::GuardedMemory& memory) {
    return reinterpret_cast<float*>(memory.data());
  };
  auto* const at = reinterpret_cast<std::int32_t*>(places.data());
  floats(from)[kPlanes * 4 - 2] = 3.0f;
  simt::run_options() = {.block_begin = kPlanes / 256 - 1};
  launch_cuda(MaxPool2d<float>{shape, floats(from), floats(to), at}, {});
  CHECK(floats(to)[kPlanes * 4 - 2] == 3.0f);
  CHECK(at[kLast * 4 + 3] == 3);
  launch_cuda(MaxPool2dGrad<float>{shape, floats(to), at, floats(back)}, {});
  CHECK(floats(back)[kPlanes * 4 - 2] == 3.0f);
  launch_cuda(AvgPool2d<float>{shape, {}, floats(from), floats(to)}, {});
  CHECK(floats(to)[kPlanes * 4 - 2] == 3.0f);
  launch_cuda(AvgPool2dGrad<float>{shape, {}, floats(to), floats(back)}, {});
  CHECK(floats(back)[kPlanes * 4 - 2] == 3.0f);
  simt::run_options() = {};
}
