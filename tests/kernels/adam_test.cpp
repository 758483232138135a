// The Adam step: plain loops, both CPU paths, threads, bias correction far out.
#include "accrue/kernels/adam.h"

#include "accrue/core/bits.h"
#include "accrue/core/error.h"
#include "accrue/tests/support/cpu_paths.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

template <class T>
struct Arrays {
  std::vector<T> p, g, m, v, v_max;

  void point(AdamStep<T>& step, bool amsgrad) {
    step.p = p.data();
    step.g = g.data();
    step.m = m.data();
    step.v = v.data();
    step.v_max = amsgrad ? v_max.data() : nullptr;
    step.count = static_cast<std::int64_t>(p.size());
  }
  bool equals(const Arrays& other) const {
    const auto same = [](const std::vector<T>& a, const std::vector<T>& b) {
      return hash_bits(std::span<const T>(a)) == hash_bits(std::span<const T>(b));
    };
    return same(p, other.p) && same(m, other.m) && same(v, other.v) && same(v_max, other.v_max);
  }
};

template <class T>
void reference_step(const AdamStep<T>& args) {
  const auto t = static_cast<double>(args.step);
  const double bc1 = 1 - std::pow(args.beta1, t), bc2 = 1 - std::pow(args.beta2, t);
  const T rate = static_cast<T>(-args.lr / bc1), root = static_cast<T>(std::sqrt(bc2));
  const T w1 = static_cast<T>(1 - args.beta1), w2 = static_cast<T>(1 - args.beta2);
  for (std::int64_t i = 0; i < args.count; ++i) {
    T& p = args.p[i];
    T& m = args.m[i];
    T& v = args.v[i];
    T d = args.maximize ? -args.g[i] : args.g[i];
    if (args.decoupled) {
      p = p * static_cast<T>(1 - args.lr * args.weight_decay);
    } else if (args.weight_decay != 0) {
      d = std::fma(static_cast<T>(args.weight_decay), p, d);
    }
    if (!args.lerp) {
      m = m * static_cast<T>(args.beta1);
      m = std::fma(w1, d, m);
    } else {
      m = w1 < T(0.5) ? std::fma(w1, d - m, m) : std::fma(-(d - m), 1 - w1, d);
    }
    v = v * static_cast<T>(args.beta2);
    v = std::fma(w2 * d, d, v);
    T squares = v;
    if (args.v_max != nullptr) squares = args.v_max[i] = std::max(args.v_max[i], v);
    T divisor = std::sqrt(squares) / root;
    divisor = divisor + static_cast<T>(args.eps);
    T move = rate * m;
    move = move / divisor;
    p = p + move;
  }
}

}  // namespace

TEST_CASE_TEMPLATE("kernels.adam: every combination of options equals the formulas",
                   T,
                   float,
                   double) {
  std::mt19937_64 random(1);
  std::normal_distribution<T> normal;
  int num_steps = 0;
  for_each_cpu_path([&] {
    for (const std::size_t count : {0, 1, 7, 1003, 20000}) {
      const std::vector<T> zeros(count, T(0));
      Arrays<T> ours = {zeros, zeros, zeros, zeros, zeros};
      for (T& x : ours.p) x = normal(random);
      Arrays<T> expected = ours;
      for (int flags = 0; flags < 64; ++flags) {
        for (T& x : ours.g) x = normal(random);
        if (count > 0) ours.g[0] = T(0);  // its sign shows when maximizing
        expected.g = ours.g;
        AdamStep<T> step;
        step.step = flags + 1;
        step.lr = 0.1;
        step.beta1 = (flags & 1) ? 0.9 : 0.4;
        step.beta2 = 0.99;
        step.eps = 1e-6;
        step.weight_decay = (flags & 2) ? 0.01 : 0.0;
        step.decoupled = flags & 4;
        step.lerp = flags & 8;
        step.maximize = flags & 16;
        ours.point(step, flags & 32);
        launch_cpu(step);
        expected.point(step, flags & 32);
        reference_step(step);
        CAPTURE(flags);
        CHECK(ours.equals(expected));
        ++num_steps;
      }
    }
  });
  MESSAGE(num_steps << " steps");
}

TEST_CASE("kernels.adam: far out the bias corrections are exactly 1") {
  for (const std::int64_t t : {std::int64_t{1} << 31,
                               (std::int64_t{1} << 53) + 1,
                               std::numeric_limits<std::int64_t>::max()}) {
    float p = 1, m = 0.5f, v = 0.25f;
    const float g = 0.5f;
    AdamStep<float> step;
    step.p = &p;
    step.g = &g;
    step.m = &m;
    step.v = &v;
    step.count = 1;
    step.step = t;
    step.lr = 0.125;
    step.beta1 = 0.875;
    step.beta2 = 0.875;
    launch_cpu(step);
    CHECK(m == 0.5f);
    CHECK(v == 0.25f);
    CHECK(p == 1 - 0.125f);
  }
}

TEST_CASE("kernels.adam: a step below 1 is refused") {
  AdamStep<float> step;
  step.step = 0;
  CHECK_THROWS_WITH_AS(
      launch_cpu(step), "[adam] step must be >= 1, got 0; count from 1", ValueError);
}
