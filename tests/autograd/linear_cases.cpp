// Rows of linear layers.
#include "accrue/autograd/ops/linear.h"
#include "accrue/autograd/ops/unary.h"
#include "accrue/tests/support/bad_call.h"

#include <cmath>

namespace accrue::test {
namespace {

/// c[m,n] = one chain over k of a(m, k) * b(k, n).
template <class A, class B>
Array product(std::int64_t rows, std::int64_t terms, std::int64_t columns, const A& a, const B& b) {
  Array c = zeros({rows, columns});
  for (std::int64_t m = 0; m < rows; ++m) {
    for (std::int64_t n = 0; n < columns; ++n) {
      for (std::int64_t k = 0; k < terms; ++k) {
        c[m * columns + n] = std::fma(a(m, k), b(k, n), c[m * columns + n]);
      }
    }
  }
  return c;
}

Array linear_value(const Arrays& x) {
  const std::int64_t outputs = x[1].shape[0], inputs = x[1].shape[1];
  Shape shape = x[0].shape;
  shape[shape.rank() - 1] = outputs;
  const auto at = [&](std::int64_t n, std::int64_t i) { return x[0][n * inputs + i]; };
  const auto weight = [&](std::int64_t i, std::int64_t o) { return x[1][o * inputs + i]; };
  Array y = product(numel(shape) / std::max<std::int64_t>(outputs, 1), inputs, outputs, at, weight);
  y.shape = shape;
  for (std::int64_t i = 0; i < y.numel() && x.size() > 2; ++i) y[i] += x[2][i % outputs];
  return y;
}

/// Chains over rows of dy that are not all zero.
Arrays linear_gradients(const Arrays& x, const Array&, const Array& dy) {
  const std::int64_t outputs = x[1].shape[0], inputs = x[1].shape[1];
  const std::int64_t rows = dy.numel() / std::max<std::int64_t>(outputs, 1);
  const auto gradient = [&](std::int64_t n, std::int64_t o) { return dy[n * outputs + o]; };
  const auto weight = [&](std::int64_t o, std::int64_t i) { return x[1][o * inputs + i]; };
  Array dx =
      product(x[0].numel() / std::max<std::int64_t>(inputs, 1), outputs, inputs, gradient, weight);
  dx.shape = x[0].shape;
  Arrays gradients = {dx, zeros(x[1].shape), zeros({outputs})};
  for (std::int64_t n = 0; n < rows; ++n) {
    bool is_zero = true;
    for (std::int64_t o = 0; o < outputs; ++o) is_zero &= gradient(n, o) == 0;
    if (is_zero) continue;
    for (std::int64_t o = 0; o < outputs; ++o) {
      for (std::int64_t i = 0; i < inputs; ++i) {
        float& element = gradients[1][o * inputs + i];
        element = std::fma(gradient(n, o), x[0][n * inputs + i], element);
      }
      gradients[2][o] += gradient(n, o);
    }
  }
  gradients.resize(x.size());
  return gradients;
}

Variable call_linear(std::span<const Variable> x) {
  return linear(x[0], x[1], x.size() > 2 ? x[2] : Variable());
}

std::vector<BadCall> linear_errors() {
  const Tensor x = Tensor::ones({2, 3}), w = Tensor::ones({5, 3}), b = Tensor::ones({5});
  const auto f64 = [](const Tensor& t) { return t.to(DType::float64); };
  const auto i64 = [](const Tensor& t) { return t.to(DType::int64); };
  const auto dtypes = [](const char* got) {
    return text(
        "[linear] input, weight and bias must have one dtype, got ", got, "; convert with to()");
  };
  const auto wrong_input = [](const char* got) {
    return text(
        "[linear] input must be [..., 3] for weight [5, 3], got ", got, "; check in_features");
  };
  const auto not_major = [](const char* got) {
    return text(
        "[linear] the input of a parameter must be sample-major in a window (dimension 0 "
        "counts samples), got shape ",
        got,
        "; keep the batch dimension first or use invariant = false");
  };
  const char* not_leaf =
      "[linear] weight and bias must be parameters in a window, got the result of an operation; "
      "use invariant = false";
  return {throws<ShapeError>("[linear] weight must be [O, I], got [3]", {x, Tensor::ones({3})}),
          throws<ShapeError>("[linear] weight must be [O, I], got [5, 3, 1]",
                             {x, Tensor::ones({5, 3, 1})}),
          throws<ShapeError>("[linear] weight must be [O, I], got []", {x, Tensor()}),
          throws<ShapeError>(wrong_input("[2, 4]"), {Tensor::ones({2, 4}), w}),
          throws<ShapeError>(wrong_input("[3, 2]"), {Tensor::ones({3, 2}), w, b}),
          throws<ShapeError>(wrong_input("[4, 2, 1]"), {Tensor::ones({4, 2, 1}), w}),
          throws<ShapeError>(wrong_input("[5]"), {Tensor::ones({5}), w}),
          throws<ShapeError>(wrong_input("[]"), {Tensor::ones({}), w}),
          throws<ShapeError>(wrong_input("[]"), {Tensor(), w}),
          throws<ShapeError>("[linear] bias must be [5] for weight [5, 3], got [3]",
                             {x, w, Tensor::ones({3})}),
          throws<ShapeError>("[linear] bias must be [5] for weight [5, 3], got [1]",
                             {x, w, Tensor::ones({1})}),
          throws<ShapeError>("[linear] bias must be [5] for weight [5, 3], got [1, 5]",
                             {x, w, Tensor::ones({1, 5})}),
          throws<DTypeError>(dtypes("float64, float32 and float32"), {f64(x), w}),
          throws<DTypeError>(dtypes("float32, float64 and float64"), {x, f64(w)}),
          throws<DTypeError>(dtypes("float32, float32 and float64"), {x, w, f64(b)}),
          throws<DTypeError>("[linear] needs float32 or float64, got int64; convert with to()",
                             {i64(x), i64(w), i64(b)}),
          throws_in_window(not_major("[2, 3] without a known sample dimension"),
                           {x, w},
                           [](auto v) { return linear(Variable(v[0].value()), v[1]); }),
          throws_in_window(not_major("[2, 3, 3] with samples in dimension 1"),
                           {batch({2, 3, 3}, 1), w}),
          throws_in_window(not_major("[3] with samples in dimension 0"), {batch({3}), w}),
          throws_in_window(
              not_leaf, {batch({2, 3}), w}, [](auto v) { return linear(v[0], neg(v[1])); }),
          throws_in_window(not_leaf, {batch({2, 3}), w, b}, [](auto v) {
            return linear(v[0], v[1], neg(v[2]));
          })};
}

OpCase linear_row(const char* name,
                  std::vector<Role> roles,
                  std::vector<std::vector<Shape>> shapes,
                  std::vector<BadCall> errors = {}) {
  OpCase row;
  row.name = name;
  for (const Role role : roles) row.inputs.push_back({role});
  row.shapes = std::move(shapes);
  row.function = call_linear;
  row.forward = linear_value;
  row.backward = linear_gradients;
  row.errors = std::move(errors);
  return row;
}

}  // namespace

std::vector<OpCase> linear_cases() {
  constexpr Role kSamples = Role::samples, kParameter = Role::parameter, kOther = Role::other;
  return {
      linear_row("linear",
                 {kSamples, kParameter},
                 {{{4, 3}, {5, 3}}, {{3, 2, 4}, {2, 4}}, {{0, 3}, {5, 3}}, {{9, 67}, {33, 67}}}),
      linear_row("linear with bias",
                 {kSamples, kParameter, kParameter},
                 {{{4, 3}, {5, 3}, {5}},
                  {{2, 3, 1, 2}, {1, 2}, {1}},
                  {{4, 0}, {5, 0}, {5}},
                  {{4, 3}, {0, 3}, {0}},
                  {{0, 3}, {5, 3}, {5}},
                  {{0, 2, 3}, {5, 3}, {5}},
                  {{9, 67}, {33, 67}, {33}}},
                 linear_errors()),
      linear_row("linear of a vector", {kOther, kParameter, kParameter}, {{{3}, {5, 3}, {5}}}),
      linear_row("linear with a weight that an operation made",
                 {kSamples, kOther, kOther},
                 {{{4, 3}, {5, 3}, {5}}, {{0, 3}, {5, 3}, {5}}})};
}

}  // namespace accrue::test
