// Rows of cross-entropy and squared error.
#include "accrue/autograd/ops/losses.h"
#include "accrue/tests/support/bad_call.h"
#include "accrue/tests/support/cross_entropy_reference.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/literal_sum.h"

#include <cmath>

namespace accrue::test {
namespace {

// ---- cross-entropy ----

OpCase cross_entropy_row(const char* name,
                         const CrossEntropy& kind,
                         std::vector<BadCall> errors = {}) {
  const Domain classes = kind.ignore_index == -100 ? Domain::classes_or_ignored : Domain::classes;
  const Role role = kind.reduction == Reduction::none ? Role::samples : Role::other;
  return {.name = name,
          .inputs = {{role}, {role, classes}},
          .shapes = {{{4, 3}, {4}}, {{3, 2}, {3}}, {{0, 3}, {0}}, {{9, 67}, {9}}, {{3, 1100}, {3}}},
          .function =
              [=](auto x) {
                return cross_entropy(x[0], x[1].value(), kind.options(x[0]), kind.reduction);
              },
          .forward = [=](const Arrays& x) { return cross_entropy_value(kind, x); },
          .backward = [=](const Arrays& x,
                          const Array&,
                          const Array& dy) { return cross_entropy_gradient(kind, x, dy); },
          .errors = std::move(errors)};
}

Function with_options(CrossEntropyOptions options) {
  return [=](auto x) { return cross_entropy(x[0], x[1].value(), options); };
}

template <class... Rest>
std::string message(const Rest&... rest) {
  return text("[cross_entropy] ", rest...);
}

std::vector<BadCall> target_errors() {
  const auto labels = [](std::int64_t a, std::int64_t b) {
    return Tensor::of<std::int64_t>({a, b});
  };
  const auto outside = [](const char* got, int index, const char* ignore = "-100") {
    return message("target must lie in [0, 3), got ",
                   got,
                   " at index ",
                   index,
                   "; check the label encoding or set ignore_index (now ",
                   ignore,
                   ")");
  };
  const auto shapes = [](const char* got) {
    return message("logits must be [N, C] and target [N], got ",
                   got,
                   "; flatten tokens with reshape({-1, C}) and reshape({-1})");
  };
  const auto dtype = [](const char* got) {
    return message("target must be int64 class indices, got ", got, "; convert with to()");
  };
  const Tensor x = Tensor::ones({2, 3}), t = labels(0, 2);
  const Function ignore_7 = with_options({.ignore_index = 7});
  return {throws<IndexError>(outside("3", 1), {x, labels(0, 3)}),
          throws<IndexError>(outside("-1", 0), {x, labels(-1, 0)}),
          throws<IndexError>(outside("-9223372036854775808", 1), {x, labels(0, INT64_MIN)}),
          throws<IndexError>(outside("-100", 0, "7"), {x, labels(-100, 0)}, ignore_7),
          throws<ShapeError>(shapes("[2, 3] and [3]"), {x, Tensor::arange(3)}),
          throws<ShapeError>(shapes("[3] and [3]"), {Tensor::ones({3}), Tensor::arange(3)}),
          throws<ShapeError>(shapes("[2, 3, 1] and [2]"), {Tensor::ones({2, 3, 1}), t}),
          throws<ShapeError>(shapes("[2, 3] and [2, 1]"), {x, t.unsqueeze(1)}),
          throws<ShapeError>(shapes("[2, 3] and []"), {x, Tensor()}),
          throws<ShapeError>(shapes("[] and [2]"), {Tensor(), t}),
          throws<DTypeError>(dtype("int32"), {x, t.to(DType::int32)}),
          throws<DTypeError>(dtype("float32"), {x, t.to(DType::float32)})};
}

std::vector<BadCall> cross_entropy_errors() {
  const Tensor x = Tensor::ones({2, 3}), t = Tensor::arange(2);
  const auto weights = [](const Shape& shape, DType dtype = DType::float32) {
    return with_options({.class_weights = there(Tensor::ones(shape, dtype))});
  };
  const auto smoothing = [&](double value, const char* got) {
    return throws<ValueError>(
        message("label_smoothing must lie in [0, 1], got ", got, "; pass a share such as 0.1"),
        {x, t},
        with_options({.label_smoothing = value}));
  };
  const char* mixes =
      "[cross_entropy] a softmax along the sample dimension mixes samples, so its bits would "
      "depend on the micro-batch; reduce with Loss::from_rows or use invariant = false";
  const char* mean =
      "[sum] a sum over the sample dimension mixes samples, so its bits would depend on the "
      "micro-batch; reduce with Loss::from_rows or use invariant = false";
  std::vector<BadCall> errors = target_errors();
  const std::vector<BadCall> others = {
      throws<ShapeError>(message("class_weights must be [3], got [2]"), {x, t}, weights({2})),
      throws<ShapeError>(message("class_weights must be [3], got [3, 1]"), {x, t}, weights({3, 1})),
      throws<DTypeError>(message("class_weights must be float32 like the logits, got float64"),
                         {x, t},
                         weights({3}, DType::float64)),
      throws<DTypeError>(message("needs float32 or float64, got int64; convert with to()"),
                         {x.to(DType::int64), t}),
      throws<ShapeError>(
          message("logits must have at least one class, got [2, 0]; check the last layer"),
          {Tensor::ones({2, 0}), t}),
      smoothing(-0.1, "-0.1"),
      smoothing(1.1, "1.1"),
      smoothing(std::nan(""), "nan"),
      throws_in_window(mixes, {batch({2, 2}, 1), t}),
      throws_in_window(mean, {batch({2, 3}), t})};
  errors.insert(errors.end(), others.begin(), others.end());
  return errors;
}

// ---- squared error ----

/// Rows of a batch of numbers hold one number each.
std::int64_t row_length(const Shape& shape, bool has_samples) {
  return shape.rank() == 0 || (shape.rank() == 1 && has_samples) ? 1 : shape.back();
}

Array mse_value(const Arrays& x, Reduction reduction, bool has_samples) {
  const Shape& shape = x[0].shape;
  const auto d = [&](std::int64_t i) { return x[0][i] - x[1][i]; };
  if (reduction == Reduction::none) {
    Array y = x[0];
    for (std::int64_t i = 0; i < y.numel(); ++i) y[i] = d(i) * d(i);
    return y;
  }
  const std::int64_t length = row_length(shape, has_samples);
  Array rows;
  rows.shape = shape;
  if (shape.rank() > 0 && !(shape.rank() == 1 && has_samples)) rows.shape.erase(shape.rank() - 1);
  for (std::int64_t n = 0; n < numel(rows.shape); ++n) {
    rows.values.push_back(literal_accumulate<float>(length, [&](float acc, std::int64_t c) {
      return std::fma(d(n * length + c), d(n * length + c), acc);
    }));
  }
  return rows;
}

OpCase mse_rows_row() {
  return {.name = "mse_rows",
          .inputs = {{Role::samples}, {Role::samples}},
          .shapes = {{{4, 3}, {4, 3}},
                     {{5}, {5}},
                     {{}, {}},
                     {{2, 3, 2}, {2, 3, 2}},
                     {{0, 3}, {0, 3}},
                     {{3, 0}, {3, 0}},
                     {{3, 1100}, {3, 1100}}},
          .function = [](auto x) { return mse_rows(x[0], x[1]); },
          .forward = [](const Arrays& x) { return mse_value(x, Reduction::sum, true); },
          .backward =
              [](const Arrays& x, const Array&, const Array& dy) {
                Array dx = x[0], minus = x[0];
                const std::int64_t length = row_length(dx.shape, true);
                for (std::int64_t i = 0; i < dx.numel(); ++i) {
                  const float d = x[0][i] - x[1][i];
                  dx[i] = (d + d) * dy[i / length];
                  minus[i] = -dx[i];
                }
                return Arrays{dx, minus};
              }};
}

std::vector<BadCall> mse_errors() {
  const auto ones = [](const Shape& shape) { return Tensor::ones(shape); };
  const auto shapes = [](const char* got) {
    return text(
        "[mse] input and target must have one shape, got ", got, "; reshape or expand one of them");
  };
  const auto dtypes = [](const char* got) {
    return text("[mse] input and target must have one dtype, got ", got, "; convert with to()");
  };
  const char* mixed =
      "[mse] a difference across different sample dimensions mixes samples, so its bits would "
      "depend "
      "on the micro-batch; reduce with Loss::from_rows or use invariant = false";
  const char* mean =
      "[sum] a sum over the sample dimension mixes samples, so its bits would depend on the "
      "micro-batch; reduce with Loss::from_rows or use invariant = false";
  return {throws<ShapeError>(shapes("[3, 1] and [3]"), {ones({3, 1}), ones({3})}),
          throws<ShapeError>(shapes("[3] and [3, 1]"), {ones({3}), ones({3, 1})}),
          throws<ShapeError>(shapes("[3, 2] and [3, 4]"), {ones({3, 2}), ones({3, 4})}),
          throws<ShapeError>(shapes("[2, 3] and [6]"), {ones({2, 3}), ones({6})}),
          throws<ShapeError>(shapes("[] and [1]"), {ones({}), ones({1})}),
          throws<ShapeError>(shapes("[0] and [0, 1]"), {ones({0}), ones({0, 1})}),
          throws<ShapeError>(shapes("[2] and []"), {ones({2}), Tensor()}),
          throws<DTypeError>(dtypes("float32 and float64"),
                             {ones({2}), Tensor::ones({2}, DType::float64)}),
          throws<DTypeError>(dtypes("float64 and float32"),
                             {Tensor::ones({2}, DType::float64), ones({2})}),
          throws<DTypeError>(dtypes("float32 and int64"), {ones({2}), Tensor::arange(2)}),
          throws<DTypeError>("[mse] needs float32 or float64, got int64; convert with to()",
                             {Tensor::arange(2), Tensor::arange(2)}),
          throws<StateError>(kUndefined, {Tensor(), Tensor()}),
          throws_in_window(mean, {batch({2, 3}), batch({2, 3})}),
          throws_in_window(mixed, {batch({2, 2}), batch({2, 2}, 1)}, [](auto v) {
            return mse_rows(v[0], v[1]);
          })};
}

OpCase mse_row(const char* name, Reduction reduction, std::vector<BadCall> errors = {}) {
  OpCase row;
  row.name = name;
  row.inputs = {{}, {}};
  row.shapes = {{{4, 3}, {4, 3}}, {{5}, {5}}, {{}, {}}, {{0, 3}, {0, 3}}, {{40, 35}, {40, 35}}};
  row.function = [=](auto x) { return mse_loss(x[0], x[1], reduction); };
  row.forward = [=](const Arrays& x) {
    const Array rows = mse_value(x, reduction, false);
    if (reduction == Reduction::none) return rows;
    const float sum = literal_sum<float>(rows.numel(), [&](std::int64_t n) { return rows[n]; });
    const bool is_mean = reduction == Reduction::mean;
    return Array{{}, {is_mean ? sum / static_cast<float>(x[0].numel()) : sum}};
  };
  row.backward = [=](const Arrays& x, const Array&, const Array& dy) {
    Array dx = x[0], minus = x[0];
    for (std::int64_t i = 0; i < dx.numel(); ++i) {
      const float d = x[0][i] - x[1][i];
      if (reduction == Reduction::none) {
        dx[i] = dy[i] * d + dy[i] * d;
      } else {
        const bool is_mean = reduction == Reduction::mean;
        dx[i] = (d + d) * (is_mean ? dy[0] / static_cast<float>(dx.numel()) : dy[0]);
      }
      minus[i] = -dx[i];
    }
    return Arrays{dx, minus};
  };
  row.errors = std::move(errors);
  return row;
}

}  // namespace

std::vector<OpCase> loss_cases() {
  return {
      cross_entropy_row("cross_entropy", {}),
      cross_entropy_row("cross_entropy that ignores a class", {.ignore_index = 0}),
      cross_entropy_row("cross_entropy with smoothing", {.smoothing = 0.1}),
      cross_entropy_row("cross_entropy with smoothing alone", {.smoothing = 1}),
      cross_entropy_row("cross_entropy with class weights", {.has_weights = true}),
      cross_entropy_row("cross_entropy with all options",
                        {.has_weights = true, .smoothing = 0.3, .ignore_index = 0}),
      cross_entropy_row("sum of cross_entropy", {.reduction = Reduction::sum}),
      cross_entropy_row(
          "mean of cross_entropy", {.reduction = Reduction::mean}, cross_entropy_errors()),
      cross_entropy_row(
          "mean of cross_entropy with all options",
          {.has_weights = true, .smoothing = 0.3, .ignore_index = 0, .reduction = Reduction::mean}),
      mse_rows_row(),
      mse_row("mse_loss without reduction", Reduction::none),
      mse_row("sum of mse_loss", Reduction::sum),
      mse_row("mean of mse_loss", Reduction::mean, mse_errors())};
}

}  // namespace accrue::test
