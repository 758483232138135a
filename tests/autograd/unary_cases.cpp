// Rows of the functions of one operand.
#include "accrue/autograd/ops/unary.h"
#include "accrue/kernels/scalar/exp.h"
#include "accrue/kernels/scalar/log.h"
#include "accrue/tests/support/bad_call.h"

namespace accrue::test {
namespace {

using Value = float (*)(float x);
using Derivative = float (*)(float x, float y, float dy);

OpCase row(const char* name,
           Domain domain,
           Variable (*op)(const Variable&),
           Value value,
           Derivative derivative) {
  return {
      .name = name,
      .inputs = {{Role::samples, domain}},
      .shapes = {{{4, 3}}, {{}}, {{5}}, {{2, 3, 2}}, {{0, 3}}, {{3, 0}}, {{9, 67}}},
      .function = [op](auto x) { return op(x[0]); },
      .forward =
          [value](const Arrays& x) {
            Array y = x[0];
            for (float& element : y.values) element = value(element);
            return y;
          },
      .backward =
          [derivative](const Arrays& x, const Array& y, const Array& dy) {
            Array dx = dy;
            for (std::int64_t i = 0; i < dx.numel(); ++i) {
              dx[i] = derivative(x[0][i], y[i], dy[i]);
            }
            return Arrays{dx};
          },
      .errors = {throws<DTypeError>(
                     text("[", name, "] needs float32 or float64, got int64; convert with to()"),
                     {Tensor::arange(3)}),
                 throws<StateError>(kUndefined, {Tensor()})}};
}

}  // namespace

std::vector<OpCase> unary_cases() {
  namespace scalar = kernels::scalar;
  return {
      row(
          "relu",
          Domain::nonzero,
          relu,
          [](float x) { return x < 0 ? 0 : x; },
          [](float x, float, float dy) { return x > 0 || x != x ? dy : 0; }),
      row(
          "exp",
          Domain::real,
          exp,
          [](float x) { return scalar::exp(x); },
          [](float, float y, float dy) { return dy * y; }),
      row(
          "log",
          Domain::positive,
          log,
          [](float x) { return scalar::log(x); },
          [](float x, float, float dy) { return dy / x; }),
      row(
          "neg",
          Domain::real,
          neg,
          [](float x) { return -x; },
          [](float, float, float dy) { return -dy; }),
  };
}

}  // namespace accrue::test
