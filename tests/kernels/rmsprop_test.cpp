// The RMSprop step: plain loops, both CPU paths, threads, a variance that rounds below 0.
#include "accrue/kernels/rmsprop.h"

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
struct Arrays {
  std::vector<T> p, square_average, average, buffer;

  void point(RmspropStep<T>& step, bool centered) {
    step.p = p.data();
    step.square_average = square_average.data();
    step.average = centered ? average.data() : nullptr;
    step.buffer = step.momentum != 0 ? buffer.data() : nullptr;
    step.count = static_cast<std::int64_t>(p.size());
  }
  bool equals(const Arrays& other) const {
    const auto same = [](const std::vector<T>& a, const std::vector<T>& b) {
      return hash_bits(std::span<const T>(a)) == hash_bits(std::span<const T>(b));
    };
    return same(p, other.p) && same(square_average, other.square_average) &&
           same(average, other.average) && same(buffer, other.buffer);
  }
};

template <class T>
void reference_step(const RmspropStep<T>& args) {
  const T alpha = static_cast<T>(args.alpha), rest = static_cast<T>(1 - args.alpha);
  for (std::int64_t i = 0; i < args.count; ++i) {
    T d = args.maximize ? -args.g[i] : args.g[i];
    if (args.weight_decay != 0) d = std::fma(static_cast<T>(args.weight_decay), args.p[i], d);
    T square = args.square_average[i] * alpha;
    args.square_average[i] = square = std::fma(rest * d, d, square);
    if (args.average != nullptr) {
      T& average = args.average[i];
      average = average * alpha;
      average = std::fma(rest, d, average);
      square = std::max(T(0), std::fma(-average, average, square));
    }
    T root = std::sqrt(square);
    root = root + static_cast<T>(args.eps);
    if (args.buffer != nullptr) {
      T move = args.buffer[i] * static_cast<T>(args.momentum);
      args.buffer[i] = move = move + d / root;
      args.p[i] = std::fma(static_cast<T>(-args.lr), move, args.p[i]);
    } else {
      T move = static_cast<T>(-args.lr) * d;
      move = move / root;
      args.p[i] = args.p[i] + move;
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("kernels.rmsprop: every combination of options equals the formulas",
                   T,
                   float,
                   double) {
  std::mt19937_64 random(1);
  std::normal_distribution<T> normal;
  int num_steps = 0;
  for_each_cpu_path([&] {
    for (const std::size_t count : {0, 1, 7, 1003, 20000}) {
      const std::vector<T> zeros(count, T(0));
      std::vector<T> g = zeros;
      Arrays<T> ours = {zeros, zeros, zeros, zeros};
      for (T& x : ours.p) x = normal(random);
      Arrays<T> expected = ours;
      for (int flags = 0; flags < 16; ++flags) {
        for (T& x : g) x = normal(random);
        RmspropStep<T> step;
        step.g = g.data();
        step.lr = 0.1;
        step.alpha = 0.9;
        step.eps = 1e-6;
        step.weight_decay = (flags & 1) ? 0.01 : 0.0;
        step.momentum = (flags & 2) ? 0.9 : 0.0;
        step.maximize = flags & 4;
        ours.point(step, flags & 8);
        launch_cpu(step);
        expected.point(step, flags & 8);
        reference_step(step);
        CAPTURE(flags);
        CHECK(ours.equals(expected));
        ++num_steps;
      }
    }
  });
  MESSAGE(num_steps << " steps");
}

TEST_CASE("kernels.rmsprop: a variance that rounds below 0 counts as 0") {
  float p = 1, square_average = 0.25f, average = 0.75f;
  const float g = 0.5f;
  RmspropStep<float> step;
  step.p = &p;
  step.g = &g;
  step.square_average = &square_average;
  step.average = &average;
  step.count = 1;
  step.lr = 0.125;
  step.alpha = 0.5;
  step.eps = 0.25;
  launch_cpu(step);
  CHECK(p == 1 - 0.125f * 0.5f / 0.25f);
}
