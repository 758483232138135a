// Clipping: the arithmetic to the bit, and inputs that must not turn into zeros or NaN.
#include "accrue/optim/clip.h"

#include "accrue/core/bits.h"
#include "accrue/core/sum_order.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>
#include <limits>
#include <random>

namespace accrue::optim {
namespace {

using test::There;

constexpr double kInf = HUGE_VAL;

Variable with_grad(const Tensor& gradient) {
  Variable p = Variable::leaf(There::zeros(gradient.shape(), gradient.dtype()));
  p.set_grad(test::there(gradient));
  return p;
}

std::vector<float> grad_of(const Variable& p) { return p.grad().to_vector<float>(); }

TEST_CASE("optim.clip: the norm is taken in double and gradients are scaled in torch's way") {
  const Variable a = with_grad(There::of<float>({3, -4, 12}));
  const Variable b = with_grad(There::of<float>({{1, 2}, {2, 4}}));
  CHECK(clip_grad_norm({a, b}, 1) == std::sqrt(194.0));
  const float c = static_cast<float>(1.0 / (std::sqrt(194.0) + 1e-6));
  CHECK(grad_of(a) == std::vector<float>{3 * c, -4 * c, 12 * c});
  CHECK(grad_of(b) == std::vector<float>{c, 2 * c, 2 * c, 4 * c});
  CHECK(hex8(grad_of(a)[0]) == "3e5c8e86");  // torch rounds c once more: 3e5c8e85
}

TEST_CASE("optim.clip: squares add up block by block, gradients left to right") {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  std::vector<Variable> parameters;
  double total = 0;
  for (const std::int64_t n : {5, 3000, 1, 1025}) {
    std::vector<float> g(static_cast<std::size_t>(n));
    for (float& value : g) value = normal(random);
    total += sum_in_order<double>(n, [&](std::int64_t j) {
      const double x = g[static_cast<std::size_t>(j)];
      return x * x;
    });
    parameters.push_back(with_grad(There::from(g, {n})));
  }
  CHECK(hex16(clip_grad_norm(parameters, kInf)) == hex16(std::sqrt(total)));
}

TEST_CASE("optim.clip: gradients within the limit keep their bits") {
  const Variable p = with_grad(There::of<float>({0.1f, -0.3f}));
  const std::uint64_t version = p.grad().version();
  CHECK(clip_grad_norm({p}, 1) == doctest::Approx(std::sqrt(0.1)));
  CHECK(clip_grad_norm({p}, kInf) > 0);
  CHECK(p.grad().version() == version);
}

TEST_CASE("optim.clip: infinity takes the largest magnitude, and 0 makes zeros") {
  const Variable a = with_grad(There::of<float>({1, -8})), b = with_grad(There::of<float>({4}));
  CHECK(clip_grad_norm({a, b}, 2, kInf) == 8);
  const float c = static_cast<float>(2.0 / (8.0 + 1e-6));
  CHECK(grad_of(a) == std::vector<float>{c, -8 * c});
  CHECK(grad_of(b) == std::vector<float>{4 * c});
  clip_grad_norm({a, b}, 0);
  CHECK(grad_of(a) == std::vector<float>{0, 0});
}

TEST_CASE("optim.clip: norms beyond float32 clip right") {
  const Variable p = with_grad(There::of<float>({3e30f, 4e30f}));
  CHECK(clip_grad_norm({p}, 1) == doctest::Approx(5e30));
  CHECK(grad_of(p)[0] == doctest::Approx(0.6f).epsilon(1e-6));
  CHECK(grad_of(p)[1] == doctest::Approx(0.8f).epsilon(1e-6));

  const float max = std::numeric_limits<float>::max();
  const Variable largest = with_grad(There::full({100, 100}, max));
  CHECK(clip_grad_norm({largest}, 1) == doctest::Approx(100.0 * max));
  CHECK(grad_of(largest)[0] == doctest::Approx(0.01f).epsilon(1e-6));
  CHECK(clip_grad_norm({largest}, 1e-30) == doctest::Approx(1));
  CHECK(grad_of(largest)[0] == doctest::Approx(1e-32f).epsilon(1e-6));
}

TEST_CASE("optim.clip: a coefficient below the normal floats keeps all bits of the gradients") {
  const Variable p = with_grad(There::of<float>({0x1.234568p100f, -0x1.fedcbap120f}));
  const double norm = clip_grad_norm({p}, 0x1p-30);
  const float c = static_cast<float>(0x1p-30 / (norm + 1e-6) * 0x1p64);
  CHECK(grad_of(p) == std::vector<float>{0x1.234568p36f * c, -0x1.fedcbap56f * c});
}

TEST_CASE("optim.clip: no gradients have norm 0, zero gradients stay zero") {
  CHECK(clip_grad_norm({}, 1) == 0);
  CHECK(clip_grad_norm({Variable::leaf(There::ones({2}))}, 1) == 0);
  const Variable zero = with_grad(There::zeros({3}));
  CHECK(clip_grad_norm({zero}, 1) == 0);
  CHECK(clip_grad_norm({zero}, 0) == 0);
  CHECK(grad_of(zero) == std::vector<float>{0, 0, 0});
}

TEST_CASE("optim.clip: NaN and infinity are refused by name, and no gradient changes") {
  const Variable fine = with_grad(There::of<float>({30, 40}));
  for (const double bad : {std::nan(""), kInf, -kInf}) {
    for (const double norm_type : {2.0, kInf}) {
      const Variable broken = with_grad(There::full({1}, bad));
      CHECK_THROWS_AS(clip_grad_norm({broken, fine}, 1, norm_type), StateError);
      CHECK_THROWS_AS(clip_grad_norm({fine, broken}, 1, norm_type), StateError);
      CHECK_THROWS_AS(clip_grad_value({fine, broken}, 1), StateError);
      CHECK(grad_of(fine) == std::vector<float>{30, 40});
    }
  }
  const Variable broken = with_grad(There::of<float>({{1, 2}, {std::nanf(""), 3}}));
  CHECK_THROWS_WITH_AS(clip_grad_norm(ParameterList({{"fc.bias", fine}, {"fc.weight", broken}}), 1),
                       "[clip_grad_norm] gradients must be finite, got nan at [1, 0] of parameter "
                       "fc.weight [2, 2] (1 such elements); nothing was changed, call zero_grad() "
                       "to go on without this step",
                       StateError);
  CHECK_THROWS_WITH_AS(
      clip_grad_norm({with_grad(Tensor::full({1}, 1e200, DType::float64))}, 1),
      "[clip_grad_norm] the sum of squares must be finite, got an overflow of float64; lower the "
      "loss",
      StateError);
}

TEST_CASE("optim.clip: limits and norms that mean nothing are refused") {
  const Variable p = with_grad(There::of<float>({3, 4}));
  CHECK_THROWS_WITH_AS(
      clip_grad_norm({p}, -1), "[clip_grad_norm] max_norm must be >= 0, got -1", ValueError);
  CHECK_THROWS_WITH_AS(clip_grad_norm({p}, std::nan("")),
                       "[clip_grad_norm] max_norm must be >= 0, got nan",
                       ValueError);
  CHECK_THROWS_WITH_AS(clip_grad_norm({p}, 1, 1),
                       "[clip_grad_norm] norm_type must be 2 or infinity, got 1",
                       ValueError);
  CHECK_THROWS_WITH_AS(
      clip_grad_norm({p, p}, 1),
      "[clip_grad_norm] every parameter must be given once, got parameter 0 again as 1",
      ValueError);
  CHECK_THROWS_WITH_AS(
      clip_grad_value({p}, -1), "[clip_grad_value] value must be >= 0, got -1", ValueError);
  CHECK_THROWS_AS(clip_grad_value({p}, std::nan("")), ValueError);
  CHECK(grad_of(p) == std::vector<float>{3, 4});
}

TEST_CASE("optim.clip: clip_grad_value limits each element") {
  const Variable p = with_grad(There::of<float>({-5, -0.5f, 0, 2}));
  clip_grad_value({p}, kInf);
  CHECK(grad_of(p) == std::vector<float>{-5, -0.5f, 0, 2});
  clip_grad_value({p}, 1);
  CHECK(grad_of(p) == std::vector<float>{-1, -0.5f, 0, 1});
}

TEST_CASE("optim.clip: gradients of any layout are clipped, frozen parameters are left out") {
  const Variable expanded = with_grad(There::full({1}, 3).expand({4}));
  const Variable transposed = with_grad(There::of<float>({{0, 4}, {4, 2}}).transpose(0, 1));
  Variable frozen = with_grad(There::full({1}, 1e6));
  frozen.set_requires_grad(false);
  CHECK(clip_grad_norm({expanded, frozen, transposed}, 1) == std::sqrt(36.0 + 36.0));
  const float c = static_cast<float>(1.0 / (std::sqrt(72.0) + 1e-6));
  CHECK(grad_of(expanded) == std::vector<float>(4, 3 * c));
  CHECK(grad_of(transposed) == std::vector<float>{0, 4 * c, 4 * c, 2 * c});
  CHECK(grad_of(frozen) == std::vector<float>{1e6f});
}

}  // namespace
}  // namespace accrue::optim
