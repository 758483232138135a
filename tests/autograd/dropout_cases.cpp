// Rows of dropout outside windows, where the draws are torch's. Windows: dropout_test.cpp.
#include "accrue/autograd/ops/dropout.h"
#include "accrue/core/generator.h"
#include "accrue/tests/support/bad_call.h"

#include <cmath>

namespace accrue::test {
namespace {

constexpr std::uint64_t kSeed = 7;

/// x under the mask that torch's generator draws after manual_seed.
Array masked(const Array& x, double p) {
  if (p == 0) return x;
  Generator generator(kSeed);
  Array y = x;
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    float keep = 0;
    generator.bernoulli(std::span<float>(&keep, 1), 1 - p);
    y[i] *= p < 1 ? keep * (1.0f / static_cast<float>(1 - p)) : 0.0f;
  }
  return y;
}

OpCase row(const char* name, double p, std::vector<BadCall> errors = {}) {
  OpCase result;
  result.name = name;
  result.inputs = {{}};
  result.shapes = {{{4, 3}}, {{}}, {{5}}, {{2, 3, 2}}, {{0, 3}}, {{9, 67}}};
  result.function = [=](auto x) {
    manual_seed(kSeed);
    return dropout(x[0], p);
  };
  result.forward = [=](const Arrays& x) { return masked(x[0], p); };
  result.backward = [=](const Arrays&, const Array&, const Array& dy) {
    return Arrays{masked(dy, p)};
  };
  result.errors = std::move(errors);
  return result;
}

std::vector<BadCall> dropout_errors() {
  const Tensor x = Tensor::ones({2, 3});
  const auto with = [](double p) { return [=](auto v) { return dropout(v[0], p); }; };
  const auto message = [](const char* got) {
    return text("[dropout] p must lie in [0, 1], got ", got);
  };
  return {throws<ValueError>(message("-0.1"), {x}, with(-0.1)),
          throws<ValueError>(message("1.5"), {x}, with(1.5)),
          throws<ValueError>(message("nan"), {x}, with(NAN)),
          throws<DTypeError>("[dropout] needs float32 or float64, got int64; convert with to()",
                             {Tensor::arange(3)}),
          throws_in_window("[dropout] the input must know its samples in a window, got shape "
                           "[2, 3] without a known sample dimension; use invariant = false",
                           {x})};
}

}  // namespace

std::vector<OpCase> dropout_cases() {
  return {row("dropout", 0.25, dropout_errors()),
          row("dropout of nothing", 0),
          row("dropout of everything", 1)};
}

}  // namespace accrue::test
