// Rows of linear layers.
#include "accrue/autograd/ops/linear.h"
#include "accrue/autograd/ops/unary.h"
#include "accrue/tests/support/bad_call.h"
#include "accrue/tests/support/linear_reference.h"

namespace accrue::test {
namespace {

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
