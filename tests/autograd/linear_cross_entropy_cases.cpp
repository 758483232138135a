// Rows of the linear layer fused with cross-entropy: the references of both, one behind the other.
#include "accrue/autograd/ops/linear_cross_entropy.h"
#include "accrue/autograd/ops/unary.h"
#include "accrue/tests/support/bad_call.h"
#include "accrue/tests/support/cross_entropy_reference.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/linear_reference.h"

#include <cmath>

namespace accrue::test {
namespace {

/// x, w and the bias, if any, of x, target, w, bias.
Arrays of_linear(const Arrays& x) {
  Arrays result = x;
  result.erase(result.begin() + 1);
  return result;
}

Arrays gradients(const CrossEntropy& kind, const Arrays& x, const Array& dy) {
  const Arrays operands = of_linear(x);
  const Array logits = linear_value(operands);
  const Array dlogits = cross_entropy_gradient(kind, {logits, x[1]}, dy)[0];
  Arrays result = linear_gradients(operands, logits, dlogits);
  result.insert(result.begin() + 1, Array());
  return result;
}

Variable call(std::span<const Variable> x,
              const CrossEntropyOptions& options = {},
              std::int64_t chunk_rows = 0) {
  return linear_cross_entropy_rows(
      x[0], x[2], x.size() > 3 ? x[3] : Variable(), x[1].value(), options, chunk_rows);
}

OpCase row(const char* name,
           const CrossEntropy& kind,
           Role role,
           bool has_bias,
           std::int64_t chunk_rows,
           std::vector<BadCall> errors = {}) {
  OpCase result;
  result.name = name;
  result.inputs = {{Role::samples}, {Role::samples, Domain::classes_or_ignored}, {role}};
  result.shapes = {{{4, 3}, {4}, {5, 3}},
                   {{3, 2}, {3}, {2, 2}},
                   {{1, 1}, {1}, {1, 1}},
                   {{0, 3}, {0}, {5, 3}},
                   {{9, 35}, {9}, {67, 35}},
                   {{3, 2}, {3}, {1100, 2}}};
  if (has_bias) {
    result.inputs.push_back({role});
    for (auto& shapes : result.shapes) shapes.push_back({shapes[2][0]});
  }
  result.function = [=](std::span<const Variable> x) {
    const Variable& classes = x[2];  // options() reads their number from dimension 1
    return call(x, kind.options(Variable(classes.value().transpose(0, 1))), chunk_rows);
  };
  result.forward = [=](const Arrays& x) {
    return cross_entropy_value(kind, {linear_value(of_linear(x)), x[1]});
  };
  result.backward = [=](const Arrays& x, const Array&, const Array& dy) {
    return gradients(kind, x, dy);
  };
  result.errors = std::move(errors);
  return result;
}

Function with(const CrossEntropyOptions& options, std::int64_t chunk_rows = 0) {
  return [=](auto x) { return call(x, options, chunk_rows); };
}

template <class... Rest>
std::string message(const Rest&... rest) {
  return text("[linear_cross_entropy] ", rest...);
}

Tensor labels(std::int64_t a, std::int64_t b) { return Tensor::of<std::int64_t>({a, b}); }

std::vector<BadCall> operand_errors() {
  const Tensor x = Tensor::ones({2, 3}), t = labels(0, 4), w = Tensor::ones({5, 3});
  const Tensor b = Tensor::ones({5});
  const auto f64 = [](const Tensor& tensor) { return tensor.to(DType::float64); };
  const auto i64 = [](const Tensor& tensor) { return tensor.to(DType::int64); };
  const auto shapes = [](const char* got) {
    return message("input must be [N, I] and target [N], got ",
                   got,
                   "; flatten tokens with reshape({-1, I}) and reshape({-1})");
  };
  const auto dtypes = [](const char* got) {
    return message("input, weight and bias must have one dtype, got ", got, "; convert with to()");
  };
  return {throws<ShapeError>(message("weight must be [O, I], got [3]"), {x, t, Tensor::ones({3})}),
          throws<ShapeError>(message("weight must be [O, I], got []"), {x, t, Tensor()}),
          throws<ShapeError>(
              message("input must be [..., 3] for weight [5, 3], got [2, 4]; check in_features"),
              {Tensor::ones({2, 4}), t, w}),
          throws<ShapeError>(
              message("input must be [..., 3] for weight [5, 3], got []; check in_features"),
              {Tensor(), t, w}),
          throws<ShapeError>(message("bias must be [5] for weight [5, 3], got [3]"),
                             {x, t, w, Tensor::ones({3})}),
          throws<ShapeError>(shapes("[2, 3] and [3]"), {x, Tensor::arange(3), w}),
          throws<ShapeError>(shapes("[2, 3] and [2, 1]"), {x, t.unsqueeze(1), w}),
          throws<ShapeError>(shapes("[2, 3] and []"), {x, Tensor(), w}),
          throws<ShapeError>(shapes("[3] and [2]"), {Tensor::ones({3}), t, w}),
          throws<ShapeError>(shapes("[1, 2, 3] and [2]"), {Tensor::ones({1, 2, 3}), t, w}),
          throws<ShapeError>(
              message("weight must have at least one class, got [0, 3]; check the last layer"),
              {x, t, Tensor::ones({0, 3})}),
          throws<DTypeError>(dtypes("float64, float32 and float32"), {f64(x), t, w}),
          throws<DTypeError>(dtypes("float32, float64 and float64"), {x, t, f64(w)}),
          throws<DTypeError>(dtypes("float32, float32 and float64"), {x, t, w, f64(b)}),
          throws<DTypeError>(message("needs float32 or float64, got int64; convert with to()"),
                             {i64(x), t, i64(w)}),
          throws<DTypeError>(
              message("target must be int64 class indices, got int32; convert with to()"),
              {x, t.to(DType::int32), w})};
}

std::vector<BadCall> label_and_option_errors() {
  const Tensor x = Tensor::ones({2, 3}), t = labels(0, 4), w = Tensor::ones({5, 3});
  const auto outside = [](const char* got, int index, const char* ignore = "-100") {
    return text("[cross_entropy] target must lie in [0, 5), got ",
                got,
                " at index ",
                index,
                "; check the label encoding or set ignore_index (now ",
                ignore,
                ")");
  };
  const auto smoothing = [&](double value, const char* got) {
    return throws<ValueError>(text("[cross_entropy] label_smoothing must lie in [0, 1], got ",
                                   got,
                                   "; pass a share such as 0.1"),
                              {x, t, w},
                              with({.label_smoothing = value}));
  };
  const auto weights = [](const Shape& shape, DType dtype = DType::float32) {
    return with({.class_weights = there(Tensor::ones(shape, dtype))});
  };
  return {
      throws<IndexError>(outside("5", 1), {x, labels(0, 5), w}),
      throws<IndexError>(outside("5", 1), {x, labels(0, 5), w}, with({}, 1)),
      throws<IndexError>(outside("-1", 0), {x, labels(-1, 0), w}),
      throws<IndexError>(outside("-9223372036854775808", 1), {x, labels(0, INT64_MIN), w}),
      throws<IndexError>(
          outside("-100", 0, "7"), {x, labels(-100, 0), w}, with({.ignore_index = 7})),
      throws<ShapeError>(message("class_weights must be [5], got [3]"), {x, t, w}, weights({3})),
      throws<DTypeError>(message("class_weights must be float32 like the logits, got float64"),
                         {x, t, w},
                         weights({5}, DType::float64)),
      smoothing(-0.1, "-0.1"),
      smoothing(1.1, "1.1"),
      smoothing(std::nan(""), "nan"),
      throws<ValueError>(message("chunk_rows must be >= 0, got -1; 0 takes a number that fits"),
                         {x, t, w},
                         with({}, -1))};
}

std::vector<BadCall> window_errors() {
  const Tensor t = labels(0, 4), w = Tensor::ones({5, 3}), b = Tensor::ones({5});
  const auto not_major = [](const char* got) {
    return message(
        "the input of a parameter must be sample-major in a window (dimension 0 counts samples), "
        "got shape ",
        got,
        "; keep the batch dimension first or use invariant = false");
  };
  const std::string not_leaf = message(
      "weight and bias must be parameters in a window, got the result of an operation; use "
      "invariant = false");
  const Function unknown = [](auto v) {
    return linear_cross_entropy_rows(Variable(v[0].value()), v[2], {}, v[1].value());
  };
  const Function made_weight = [](auto v) {
    return linear_cross_entropy_rows(v[0], neg(v[2]), {}, v[1].value());
  };
  const Function made_bias = [](auto v) {
    return linear_cross_entropy_rows(v[0], v[2], neg(v[3]), v[1].value());
  };
  return {
      throws_in_window(not_major("[2, 3] without a known sample dimension"),
                       {Tensor::ones({2, 3}), t, w},
                       unknown),
      throws_in_window(not_major("[2, 3] with samples in dimension 1"), {batch({2, 3}, 1), t, w}),
      throws_in_window(not_leaf, {batch({2, 3}), t, w}, made_weight),
      throws_in_window(not_leaf, {batch({2, 3}), t, w, b}, made_bias)};
}

std::vector<BadCall> errors() {
  std::vector<BadCall> all = operand_errors();
  for (const auto& table : {label_and_option_errors(), window_errors()})
    all.insert(all.end(), table.begin(), table.end());
  return all;
}

}  // namespace

std::vector<OpCase> linear_cross_entropy_cases() {
  constexpr Role kParameter = Role::parameter, kOther = Role::other;
  OpCase wrong_calls = row("linear_cross_entropy", {}, kParameter, false, 0, errors());
  wrong_calls.function = [](auto x) { return call(x); };
  return {
      std::move(wrong_calls),
      row("linear_cross_entropy with bias, row by row", {}, kParameter, true, 1),
      row("linear_cross_entropy with smoothing, in pairs", {.smoothing = 0.1}, kParameter, true, 2),
      row("linear_cross_entropy with all options, in chunks of 7",
          {.has_weights = true, .smoothing = 0.3},
          kParameter,
          true,
          7),
      row("linear_cross_entropy with a weight that an operation made", {}, kOther, true, 2)};
}

}  // namespace accrue::test
