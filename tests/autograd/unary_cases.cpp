// Rows of the functions of one operand.
#include "accrue/autograd/ops/unary.h"
#include "accrue/kernels/scalar/unary.h"
#include "accrue/tests/support/bad_call.h"

#include <cmath>

namespace accrue::test {
namespace {

using Op = std::function<Variable(const Variable& x)>;
using Value = std::function<float(float x)>;
using Derivative = std::function<float(float x, float y, float dy)>;

OpCase row(const char* name, Domain domain, Op op, Value value, Derivative derivative) {
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

std::vector<OpCase> plain_rows() {
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

std::vector<OpCase> activation_rows() {
  namespace scalar = kernels::scalar;
  return {
      row(
          "tanh",
          Domain::real,
          tanh,
          [](float x) { return scalar::tanh(x); },
          [](float, float y, float dy) { return dy * std::fma(-y, y, 1.0f); }),
      row(
          "sigmoid",
          Domain::real,
          sigmoid,
          [](float x) { return scalar::sigmoid(x); },
          [](float, float y, float dy) { return dy * ((1 - y) * y); }),
      row(
          "silu",
          Domain::real,
          silu,
          [](float x) { return scalar::silu(x); },
          [](float x, float, float dy) { return dy * scalar::silu_slope(x); }),
      row(
          "gelu",
          Domain::real,
          gelu,
          [](float x) { return scalar::gelu(x); },
          [](float x, float, float dy) { return dy * scalar::gelu_slope(x); }),
      row(
          "gelu_tanh",
          Domain::real,
          gelu_tanh,
          [](float x) { return scalar::gelu_tanh(x); },
          [](float x, float, float dy) { return dy * scalar::gelu_tanh_slope(x); }),
      row(
          "sqrt",
          Domain::positive,
          sqrt,
          [](float x) { return std::sqrt(x); },
          [](float, float y, float dy) { return dy / (2 * y); }),
      row(
          "abs",
          Domain::nonzero,
          abs,
          [](float x) { return std::abs(x); },
          [](float x, float, float dy) { return x > 0   ? dy
                                                : x < 0 ? -dy
                                                        : 0; }),
  };
}

/// Values that change in steps: their gradient is no derivative.
std::vector<OpCase> rounding_rows() {
  const auto bfloat16 = [](float x) { return static_cast<float>(BFloat16(x)); };
  const auto float16 = [](float x) { return static_cast<float>(Float16(x)); };
  std::vector<OpCase> rows = {
      row(
          "round_to_bfloat16",
          Domain::real,
          [](const Variable& x) { return round_to(x, DType::bfloat16); },
          bfloat16,
          [=](float, float, float dy) { return bfloat16(dy); }),
      row(
          "round_to_float16",
          Domain::real,
          [](const Variable& x) { return round_to(x, DType::float16); },
          float16,
          [=](float, float, float dy) { return float16(dy); }),
  };
  for (OpCase& op : rows) op.is_derivative = false;
  rows[0].errors.push_back(throws<ValueError>(
      "[round_to] dtype must be bfloat16 or float16, got float32; convert with to()",
      {Tensor::ones({2})},
      [](auto x) { return round_to(x[0], DType::float32); }));
  return rows;
}

/// Functions with numbers beside the operand.
std::vector<OpCase> rows_with_numbers() {
  std::vector<OpCase> rows = {
      row(
          "leaky_relu",
          Domain::nonzero,
          [](const Variable& x) { return leaky_relu(x, 0.3); },
          [](float x) { return x < 0 ? 0.3f * x : x; },
          [](float x, float, float dy) { return x > 0 ? dy : 0.3f * dy; }),
      row(
          "clamp",
          Domain::nonzero,
          [](const Variable& x) { return clamp(x, -0.2, 100); },
          [](float x) { return x < -0.2f ? -0.2f
                               : x > 100 ? 100
                                         : x; },
          [](float x, float, float dy) { return x >= -0.2f && x <= 100 ? dy : 0; }),
  };
  for (const double bound : {1.0, std::nan("")}) {
    rows.back().errors.push_back(throws<ValueError>(
        text("[clamp] bounds must be numbers with low <= high, got ", bound, " and 0; swap them"),
        {Tensor::ones({2})},
        [=](auto x) { return clamp(x[0], bound, 0); }));
  }
  for (const double exponent : {0.0, 1.0, 2.0, 3.0, -1.0, 0.5, -2.3}) {
    const auto e = static_cast<float>(exponent);
    rows.push_back(row(
        "pow",
        exponent == 0.5 || exponent == -2.3 ? Domain::positive : Domain::nonzero,
        [=](const Variable& x) { return pow(x, exponent); },
        [=](float x) { return kernels::scalar::pow(x, e); },
        [=](float x, float, float dy) {
          return e == 0 ? 0 : dy * (e * kernels::scalar::pow(x, e - 1));
        }));
  }
  return rows;
}

}  // namespace

std::vector<OpCase> unary_cases() {
  std::vector<OpCase> rows = plain_rows();
  for (const auto& more : {activation_rows(), rounding_rows(), rows_with_numbers()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

}  // namespace accrue::test
