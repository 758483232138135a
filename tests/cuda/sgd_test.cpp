// The SGD step on CUDA against the CPU's, in every bit, under every schedule.
#include "accrue/core/error.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/simt_check.h"

#include <random>

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

std::vector<float> numbers(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(engine);
  if (count > 0) values[0] = 0;  // its sign shows when maximizing
  return values;
}

}  // namespace

TEST_CASE("cuda.sgd: every combination of options has the CPU's bits, aligned or not") {
  int num_steps = 0;
  for (const std::size_t count : {0, 1, 3, 4, 5, 1023, 1025}) {
    for (unsigned flags = 0; flags < 64; ++flags) {
      SgdStep<float> step{.count = static_cast<std::int64_t>(count), .lr = 0.1};
      step.momentum = (flags & 1) ? 0.9 : 0.0;
      step.weight_decay = (flags & 2) ? 0.01 : 0.0;
      step.dampening = (flags & 4) ? 0.3 : 0.0;
      step.nesterov = flags & 8;
      step.maximize = flags & 16;
      step.first_step = flags & 32;
      std::vector<float> p = numbers(count, flags), g = numbers(count, flags + 100), buffer = p;
      DeviceFloats device_p(p, flags % 4 * 4), device_g(g, flags / 4 % 4 * 4), device_buffer(p);
      auto cpu = step;
      cpu.p = p.data();
      cpu.g = g.data();
      cpu.buffer = buffer.data();
      launch_cpu(cpu);
      CAPTURE(count);
      CAPTURE(flags);
      CHECK(examine({{"p", &device_p, p}, {"buffer", &device_buffer, buffer}}, [&] {
              step.p = device_p.data();
              step.g = device_g.data();
              step.buffer = device_buffer.data();
              launch_cuda(step, {});
            }) == "");
      ++num_steps;
    }
  }
  MESSAGE(num_steps, " steps under ", all_schedules().size(), " schedules");
}

TEST_CASE("cuda.sgd: elements behind the first 2^31 move") {
  constexpr std::int64_t kCount = (std::int64_t{1} << 31) + 1030;
  const simt::GuardedMemory p(kCount * 4, 0, simt::GuardedMemory::kWideFence);
  const simt::GuardedMemory g(kCount * 4, 0, simt::GuardedMemory::kWideFence);
  float* const values = reinterpret_cast<float*>(p.data());
  reinterpret_cast<float*>(g.data())[kCount - 1] = 2.0f;
  SgdStep<float> step{.p = values, .g = reinterpret_cast<float*>(g.data()), .count = kCount};
  step.lr = 0.5;
  simt::run_options() = {.block_begin = kCount / 1024 - 1};
  launch_cuda(step, {});
  simt::run_options() = {};
  CHECK(values[kCount - 1] == -1.0f);
  CHECK(values[kCount - 2] == 0.0f);
}

TEST_CASE("cuda.sgd: momentum without a buffer is refused") {
  float p = 1.0f;
  const float g = 1.0f;
  SgdStep<float> step{.p = &p, .g = &g, .count = 1};
  step.momentum = 0.9;
  CHECK_THROWS_AS(launch_cuda(step, {}), ValueError);
}
