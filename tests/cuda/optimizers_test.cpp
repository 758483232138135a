// The Adam, Adagrad and RMSprop steps on CUDA against the CPU's, in every bit, under every
// schedule.
#include "accrue/core/error.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/simt_check.h"

#include <cmath>
#include <memory>
#include <random>

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

std::vector<float> numbers(std::size_t count, unsigned seed, bool is_positive = false) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = is_positive ? std::abs(normal(engine)) : normal(engine);
  if (count > 0) values[0] = 0;  // its sign shows when maximizing
  return values;
}

/// An array that a step reads and writes.
template <class Step>
struct State {
  const char* name;
  float* Step::*member;
  bool is_positive = false;
};

constexpr std::size_t kCounts[] = {0, 1, 3, 4, 5, 1023, 1025};

/// Runs the step on both devices on arrays of `count` elements; "" if the bits agree.
template <class Step>
std::string examine_step(Step step,
                         std::size_t count,
                         unsigned seed,
                         const std::vector<State<Step>>& states) {
  const auto g = numbers(count, seed);
  DeviceFloats device_g(g, seed / 4 % 4 * 4);
  Step device_step = step;
  step.count = device_step.count = static_cast<std::int64_t>(count);
  step.g = g.data();
  device_step.g = device_g.data();
  std::vector<std::vector<float>> arrays;
  std::vector<std::unique_ptr<DeviceFloats>> devices;
  for (std::size_t i = 0; i < states.size(); ++i) {
    arrays.push_back(numbers(count, seed + 100 + static_cast<unsigned>(i), states[i].is_positive));
    step.*states[i].member = arrays[i].data();
    devices.push_back(std::make_unique<DeviceFloats>(arrays[i], seed % 4 * 4));
    device_step.*states[i].member = devices[i]->data();
  }
  launch_cpu(step);
  std::vector<Output> outputs;
  for (std::size_t i = 0; i < states.size(); ++i) {
    outputs.push_back({states[i].name, devices[i].get(), arrays[i]});
  }
  return examine(outputs, [&] { launch_cuda(device_step, {}); });
}

}  // namespace

TEST_CASE("cuda.optimizers: every form of Adam has the CPU's bits, aligned or not") {
  using Step = AdamStep<float>;
  int num_steps = 0;
  for (const std::size_t count : kCounts) {
    for (unsigned flags = 0; flags < 64; ++flags) {
      Step step{.lr = 0.1, .beta2 = 0.999, .eps = 1e-8};
      step.beta1 = (flags & 1) ? 0.9 : 0.3;
      step.weight_decay = (flags & 2) ? 0.01 : 0.0;
      step.decoupled = flags & 4;
      step.lerp = flags & 8;
      step.maximize = flags & 16;
      step.step = (flags & 2) ? 1 : 1000;
      std::vector<State<Step>> states = {{"p", &Step::p}, {"m", &Step::m}, {"v", &Step::v, true}};
      if (flags & 32) states.push_back({"v_max", &Step::v_max, true});
      CAPTURE(count);
      CAPTURE(flags);
      CHECK(examine_step(step, count, flags, states) == "");
      ++num_steps;
    }
  }
  MESSAGE(num_steps, " steps under ", all_schedules().size(), " schedules");
}

TEST_CASE("cuda.optimizers: every form of Adagrad has the CPU's bits, aligned or not") {
  using Step = AdagradStep<float>;
  for (const std::size_t count : kCounts) {
    for (unsigned flags = 0; flags < 8; ++flags) {
      Step step{.step = 7, .lr = 0.1, .lr_decay = 0.01, .eps = 1e-10};
      step.weight_decay = (flags & 1) ? 0.01 : 0.0;
      step.maximize = flags & 2;
      CAPTURE(count);
      CAPTURE(flags);
      CHECK(examine_step(step, count, flags, {{"p", &Step::p}, {"sum", &Step::sum, true}}) == "");
    }
  }
}

TEST_CASE("cuda.optimizers: every form of RMSprop has the CPU's bits, aligned or not") {
  using Step = RmspropStep<float>;
  for (const std::size_t count : kCounts) {
    for (unsigned flags = 0; flags < 16; ++flags) {
      Step step{.lr = 0.1, .alpha = 0.9, .eps = 1e-8, .momentum = 0.9};
      step.weight_decay = (flags & 1) ? 0.01 : 0.0;
      step.maximize = flags & 2;
      std::vector<State<Step>> states = {{"p", &Step::p},
                                         {"square_average", &Step::square_average, true}};
      if (flags & 4) states.push_back({"average", &Step::average});
      if (flags & 8) states.push_back({"buffer", &Step::buffer});
      CAPTURE(count);
      CAPTURE(flags);
      CHECK(examine_step(step, count, flags, states) == "");
    }
  }
}

TEST_CASE("cuda.optimizers: elements behind the first 2^31 move") {
  constexpr std::int64_t kCount = (std::int64_t{1} << 31) + 1030;
  const auto make = [] {
    return simt::GuardedMemory(kCount * 4, 0, simt::GuardedMemory::kWideFence);
  };
  const simt::GuardedMemory p = make(), g = make(), m = make(), v = make();
  const auto floats = [](const simt::GuardedMemory& it) {
    return reinterpret_cast<float*>(it.data());
  };
  floats(g)[kCount - 1] = 2.0f;
  AdamStep<float> step{.p = floats(p), .g = floats(g), .m = floats(m), .v = floats(v)};
  step.count = kCount;
  step.lr = 0.5;
  step.eps = 1;
  simt::run_options() = {.block_begin = kCount / 1024 - 1};
  launch_cuda(step, {});
  simt::run_options() = {};
  CHECK(floats(m)[kCount - 1] == 2.0f);
  CHECK(floats(v)[kCount - 1] == 4.0f);
  CHECK(floats(p)[kCount - 1] == doctest::Approx(-1.0 / 3));
  CHECK(floats(p)[kCount - 2] == 0.0f);
}

TEST_CASE("cuda.optimizers: a step of Adam before the first is refused") {
  AdamStep<float> step;
  step.step = 0;
  CHECK_THROWS_AS(launch_cuda(step, {}), ValueError);
}
