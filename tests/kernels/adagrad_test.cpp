// The Adagrad step: plain loops, both CPU paths, threads.
#include "accrue/kernels/adagrad.h"

#include "accrue/core/bits.h"
#include "accrue/tests/support/cpu_paths.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>
#include <random>
#include <vector>

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

template <class T>
void reference_step(const AdagradStep<T>& args) {
  const T rate =
      static_cast<T>(-args.lr / (1 + static_cast<double>(args.step - 1) * args.lr_decay));
  for (std::int64_t i = 0; i < args.count; ++i) {
    T d = args.maximize ? -args.g[i] : args.g[i];
    if (args.weight_decay != 0) d = std::fma(static_cast<T>(args.weight_decay), args.p[i], d);
    args.sum[i] = std::fma(d, d, args.sum[i]);
    T divisor = std::sqrt(args.sum[i]);
    divisor = divisor + static_cast<T>(args.eps);
    T move = rate * d;
    move = move / divisor;
    args.p[i] = args.p[i] + move;
  }
}

template <class T>
std::uint64_t hash_of(const std::vector<T>& values) {
  return hash_bits(std::span<const T>(values));
}

}  // namespace

TEST_CASE_TEMPLATE("kernels.adagrad: every combination of options equals the formulas",
                   T,
                   float,
                   double) {
  std::mt19937_64 random(1);
  std::normal_distribution<T> normal;
  int num_steps = 0;
  for_each_cpu_path([&] {
    for (const std::size_t count : {0, 1, 7, 1003, 20000}) {
      std::vector<T> p(count), g(count), sum(count, T(0));
      for (T& x : p) x = normal(random);
      std::vector<T> expected_p = p, expected_sum = sum;
      for (int flags = 0; flags < 8; ++flags) {
        for (T& x : g) x = normal(random);
        AdagradStep<T> step;
        step.p = p.data();
        step.g = g.data();
        step.sum = sum.data();
        step.count = static_cast<std::int64_t>(count);
        step.step = flags + 1;
        step.lr = 0.1;
        step.eps = 1e-6;
        step.lr_decay = (flags & 1) ? 0.3 : 0.0;
        step.weight_decay = (flags & 2) ? 0.01 : 0.0;
        step.maximize = flags & 4;
        launch_cpu(step);
        step.p = expected_p.data();
        step.sum = expected_sum.data();
        reference_step(step);
        CAPTURE(flags);
        CHECK(hash_of(p) == hash_of(expected_p));
        CHECK(hash_of(sum) == hash_of(expected_sum));
        ++num_steps;
      }
    }
  });
  MESSAGE(num_steps << " steps");
}
