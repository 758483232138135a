// The SGD step: torch's bits, plain loops, both CPU paths, threads.
#include "accrue/kernels/sgd.h"

#include "accrue/core/bits.h"
#include "accrue/core/error.h"
#include "accrue/tests/support/cpu_paths.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

struct Golden {
  const char* name;
  SgdStep<float> step;
  std::string bits;
};

SgdStep<float> options(
    double momentum, double dampening, double weight_decay, bool nesterov, bool maximize) {
  return {nullptr, nullptr, nullptr, 4, 0.1, momentum, dampening, weight_decay, nesterov, maximize};
}

// Made with torch 1.13.1 on a CPU with FMA.
const Golden kGoldens[] = {
    {"plain", options(0, 0, 0, false, false), "3ee147ae bf9851ec 3ff8f5c3 3dcc2f83"},
    {"momentum", options(0.9, 0, 0, false, false), "3ecf4f0d bf91a36e 3ff0aa65 3dcba6ad"},
    {"dampening", options(0.9, 0.5, 0, false, false), "3ee0b781 bf9559b4 3ff3212e 3dcbf2b3"},
    {"nesterov", options(0.9, 0, 0, true, false), "3eb5753b bf8b6502 3feb28b6 3dcb26ce"},
    {"weight decay", options(0, 0, 0.01, false, false), "3ee08882 bf97d920 3ff833ce 3dcb928a"},
    {"nesterov and weight decay",
     options(0.9, 0, 0.01, true, false),
     "3eb37d97 bf8a2500 3fe92604 3dc98242"},
    {"maximize", options(0.9, 0, 0, false, true), "3f185879 bfae5c92 4007aace 3dcdf2ed"},
};

template <class T>
void reference_step(const SgdStep<T>& args) {
  for (std::int64_t i = 0; i < args.count; ++i) {
    T d = args.maximize ? -args.g[i] : args.g[i];
    if (args.weight_decay != 0) d = std::fma(static_cast<T>(args.weight_decay), args.p[i], d);
    if (args.momentum != 0) {
      const T momentum = static_cast<T>(args.momentum);
      const T kept = static_cast<T>(1.0 - args.dampening);
      args.buffer[i] = args.first_step ? d : std::fma(kept, d, args.buffer[i] * momentum);
      d = args.nesterov ? std::fma(momentum, args.buffer[i], d) : args.buffer[i];
    }
    args.p[i] = std::fma(static_cast<T>(-args.lr), d, args.p[i]);
  }
}

template <class T>
std::uint64_t hash_of(const std::vector<T>& values) {
  return hash_bits(std::span<const T>(values));
}

}  // namespace

TEST_CASE("kernels.sgd: three steps give torch's bits") {
  for_each_cpu_path([] {
    for (const Golden& golden : kGoldens) {
      CAPTURE(golden.name);
      float p[] = {0.5f, -1.25f, 2.0f, 0.1f}, buffer[4];
      for (int t = 1; t <= 3; ++t) {
        const float g[] = {static_cast<float>(0.1 * t), -0.2f, static_cast<float>(0.3 / t), 0.001f};
        SgdStep<float> step = golden.step;
        step.p = p;
        step.g = g;
        step.buffer = buffer;
        step.first_step = t == 1;
        launch_cpu(step);
      }
      CHECK(hex8(p[0]) + " " + hex8(p[1]) + " " + hex8(p[2]) + " " + hex8(p[3]) == golden.bits);
    }
  });
}

TEST_CASE_TEMPLATE("kernels.sgd: every combination of options equals the formulas",
                   T,
                   float,
                   double) {
  std::mt19937_64 random(1);
  int num_steps = 0;
  for_each_cpu_path([&] {
    for (const std::size_t count : {0, 1, 7, 1003, 33000}) {
      std::normal_distribution<T> normal;
      std::vector<T> p(count), g(count), buffer(count);
      for (T& x : p) x = normal(random);
      std::vector<T> expected_p = p, expected_buffer = buffer;
      for (int flags = 0; flags < 64; ++flags) {
        for (T& x : g) x = normal(random);
        if (count > 0) g[0] = T(0);  // its sign shows when maximizing
        SgdStep<T> step;
        step.p = p.data();
        step.g = g.data();
        step.buffer = buffer.data();
        step.count = static_cast<std::int64_t>(count);
        step.lr = 0.1;
        step.momentum = (flags & 1) ? 0.9 : 0.0;
        step.weight_decay = (flags & 2) ? 0.01 : 0.0;
        step.dampening = (flags & 4) ? 0.3 : 0.0;
        step.nesterov = flags & 8;
        step.maximize = flags & 16;
        step.first_step = flags & 32;
        launch_cpu(step);
        step.p = expected_p.data();
        step.buffer = expected_buffer.data();
        reference_step(step);
        CAPTURE(flags);
        CHECK(hash_of(p) == hash_of(expected_p));
        CHECK(hash_of(buffer) == hash_of(expected_buffer));
        ++num_steps;
      }
    }
  });
  MESSAGE(num_steps << " steps");
}

TEST_CASE("kernels.sgd: momentum without a buffer is refused") {
  float p = 1.0f;
  const float g = 1.0f;
  SgdStep<float> step;
  step.p = &p;
  step.g = &g;
  step.count = 1;
  step.momentum = 0.9;
  CHECK_THROWS_WITH_AS(launch_cpu(step),
                       "[sgd] momentum needs a buffer, got null with momentum 0.9; "
                       "pass one of the parameter's size",
                       ValueError);
  CHECK(p == 1.0f);
}
