// Rows of layer and RMS normalisation.
#include "accrue/autograd/ops/layer_norm.h"
#include "accrue/autograd/ops/unary.h"
#include "accrue/tests/support/bad_call.h"
#include "accrue/tests/support/literal_sum.h"

#include <cmath>
#include <limits>

namespace accrue::test {
namespace {

constexpr float kEps = 0.125f;  // keeps differences away from the steep place near equal elements

/// One row read literally.
struct Row {
  const float* x;
  std::int64_t size;
  float mean = 0, rstd = 0;

  Row(const float* first, std::int64_t cols, bool is_rms) : x(first), size(cols) {
    const float count = static_cast<float>(cols);
    if (!is_rms) mean = literal_sum<float>(cols, [&](std::int64_t c) { return x[c]; }) / count;
    const float squares = literal_accumulate<float>(
        cols, [&](float acc, std::int64_t c) { return std::fma(x[c] - mean, x[c] - mean, acc); });
    rstd = 1.0f / std::sqrt(squares / count + kEps);
  }
  float n(std::int64_t c) const { return (x[c] - mean) * rstd; }
};

std::int64_t row_size(const Arrays& x, int dims) {
  return product(x[0].shape, x[0].shape.rank() - dims, x[0].shape.rank());
}

Array value(const Arrays& x, bool is_rms, int dims) {
  const std::int64_t cols = row_size(x, dims);
  Array y = x[0];
  for (std::int64_t start = 0; start < y.numel(); start += cols) {
    const Row row(x[0].values.data() + start, cols, is_rms);
    for (std::int64_t c = 0; c < cols; ++c) {
      float& out = y[start + c] = row.n(c);
      if (x.size() == 2) out = out * x[1][c];
      if (x.size() == 3) out = std::fma(out, x[1][c], x[2][c]);
    }
  }
  return y;
}

void input_gradient(const Row& row, const float* g, bool is_rms, float* dx) {
  const std::int64_t cols = row.size;
  const float count = static_cast<float>(cols);
  const float k =
      literal_accumulate<float>(
          cols, [&](float acc, std::int64_t c) { return std::fma(g[c], row.n(c), acc); }) /
      count;
  const float offset = literal_sum<float>(cols, [&](std::int64_t c) { return g[c]; }) / count;
  for (std::int64_t c = 0; c < cols; ++c) {
    dx[c] = row.rstd * std::fma(-row.n(c), k, is_rms ? g[c] : g[c] - offset);
  }
}

Arrays gradients(const Arrays& x, const Array& dy, bool is_rms, int dims) {
  const std::int64_t cols = row_size(x, dims);
  Arrays result;
  for (const Array& input : x) result.push_back(zeros(input.shape));
  for (std::int64_t start = 0; start < dy.numel(); start += cols) {
    const Row row(x[0].values.data() + start, cols, is_rms);
    std::vector<float> g;
    bool is_zero = true;
    for (std::int64_t c = 0; c < cols; ++c) {
      g.push_back(x.size() > 1 ? dy[start + c] * x[1][c] : dy[start + c]);
      is_zero &= dy[start + c] == 0;
    }
    input_gradient(row, g.data(), is_rms, result[0].values.data() + start);
    for (std::int64_t c = 0; c < cols && !is_zero && x.size() > 1; ++c) {
      result[1][c] = std::fma(dy[start + c], row.n(c), result[1][c]);
      if (x.size() > 2) result[2][c] += dy[start + c];
    }
  }
  return result;
}

Variable call(std::span<const Variable> x, bool is_rms, int dims) {
  const Shape& shape = x[0].shape();
  Shape normalized;
  for (int d = shape.rank() - dims; d < shape.rank(); ++d) normalized.push_back(shape[d]);
  const Variable weight = x.size() > 1 ? x[1] : Variable();
  if (is_rms) return rms_norm(x[0], normalized, weight, kEps);
  return layer_norm(x[0], normalized, weight, x.size() > 2 ? x[2] : Variable(), kEps);
}

OpCase row(const char* name,
           bool is_rms,
           int dims,
           std::vector<Role> roles,
           std::vector<std::vector<Shape>> shapes,
           std::vector<BadCall> errors = {}) {
  OpCase result;
  result.name = name;
  for (const Role role : roles) result.inputs.push_back({role});
  result.shapes = std::move(shapes);
  result.function = [=](auto x) { return call(x, is_rms, dims); };
  result.forward = [=](const Arrays& x) { return value(x, is_rms, dims); };
  result.backward = [=](const Arrays& x, const Array&, const Array& dy) {
    return gradients(x, dy, is_rms, dims);
  };
  result.errors = std::move(errors);
  return result;
}

Function with_shape(Shape normalized, double eps = 1e-5) {
  return [=](auto x) {
    return layer_norm(
        x[0], normalized, x.size() > 1 ? x[1] : Variable(), x.size() > 2 ? x[2] : Variable(), eps);
  };
}

std::vector<BadCall> layer_norm_errors() {
  const Tensor x = Tensor::ones({2, 3}), w = Tensor::ones({3}), b = Tensor::ones({3});
  const auto shape = [](const char* wanted, const char* got) {
    return text("[layer_norm] the input must end in the normalised shape ",
                wanted,
                " of at least one dimension, got ",
                got);
  };
  const auto eps = [](const char* got) {
    return text("[layer_norm] eps must be >= 0 and finite, got ", got);
  };
  const char* not_leaf =
      "[layer_norm] weight and bias must be parameters in a window, got the result of an "
      "operation; use invariant = false";
  const char* mixes =
      "[layer_norm] a mean along the sample dimension mixes samples, so its bits would depend on "
      "the micro-batch; reduce with Loss::from_rows or use invariant = false";
  return {
      throws<ShapeError>(shape("[4]", "[2, 3]"), {x}, with_shape({4})),
      throws<ShapeError>(shape("[]", "[2, 3]"), {x}, with_shape({})),
      throws<ShapeError>(shape("[1, 2, 3]", "[2, 3]"), {x}, with_shape({1, 2, 3})),
      throws<ShapeError>(shape("[3]", "[]"), {Tensor()}, with_shape({3})),
      throws<ShapeError>("[layer_norm] weight must have the normalised shape [3], got [1, 3]",
                         {x, Tensor::ones({1, 3})},
                         with_shape({3})),
      throws<ShapeError>("[layer_norm] bias must have the normalised shape [3], got [2]",
                         {x, w, Tensor::ones({2})},
                         with_shape({3})),
      throws<DTypeError>("[layer_norm] weight must be float32 like the input, got float64; "
                         "convert with to()",
                         {x, w.to(DType::float64)},
                         with_shape({3})),
      throws<DTypeError>("[layer_norm] bias must be float32 like the input, got float64; "
                         "convert with to()",
                         {x, w, b.to(DType::float64)},
                         with_shape({3})),
      throws<DTypeError>("[layer_norm] needs float32 or float64, got int64; convert with to()",
                         {x.to(DType::int64)},
                         with_shape({3})),
      throws<ValueError>("[layer_norm] a bias needs a weight, got none; pass ones",
                         {x, Tensor(), b},
                         with_shape({3})),
      throws<ValueError>(eps("-1"), {x}, with_shape({3}, -1)),
      throws<ValueError>(eps("nan"), {x}, with_shape({3}, NAN)),
      throws<ValueError>(eps("inf"), {x}, with_shape({3}, HUGE_VAL)),
      throws_in_window(mixes, {batch({3, 2}, 1)}, with_shape({2})),
      throws_in_window(mixes, {batch({2, 3})}, with_shape({2, 3})),
      throws_in_window(
          not_leaf, {batch({2, 3}), w}, [](auto v) { return layer_norm(v[0], {3}, neg(v[1])); }),
      throws_in_window("[layer_norm] the input of a parameter must be sample-major in a window "
                       "(dimension 0 counts samples), got shape [3, 2, 3] with samples in "
                       "dimension 1; keep the batch dimension first or use invariant = false",
                       {batch({3, 2, 3}, 1), w},
                       with_shape({3}))};
}

std::vector<BadCall> rms_norm_errors() {
  const Tensor x = Tensor::ones({2, 3});
  const auto of = [](Shape normalized) {
    return [=](auto v) { return rms_norm(v[0], normalized, v.size() > 1 ? v[1] : Variable()); };
  };
  return {
      throws<ShapeError>("[rms_norm] the input must end in the normalised shape [2] of at least "
                         "one dimension, got [2, 3]",
                         {x},
                         of({2})),
      throws<ShapeError>("[rms_norm] weight must have the normalised shape [3], got [2]",
                         {x, Tensor::ones({2})},
                         of({3}))};
}

}  // namespace

std::vector<OpCase> layer_norm_cases() {
  constexpr Role kSamples = Role::samples, kParameter = Role::parameter;
  const std::vector<std::vector<Shape>> weighted = {
      {{4, 3}, {3}}, {{2, 3, 5}, {5}}, {{0, 3}, {3}}, {{3, 1}, {1}}, {{9, 67}, {67}}};
  std::vector<std::vector<Shape>> biased = weighted;
  for (std::vector<Shape>& shapes : biased) shapes.push_back(shapes[1]);
  return {
      row("layer_norm", false, 1, {kSamples}, {{{4, 3}}, {{2, 3, 4}}, {{3, 1100}}, {{3, 0}}}),
      row("layer_norm with weight", false, 1, {kSamples, kParameter}, weighted),
      row("layer_norm with bias",
          false,
          1,
          {kSamples, kParameter, kParameter},
          biased,
          layer_norm_errors()),
      row("layer_norm over two dimensions",
          false,
          2,
          {kSamples, kParameter, kParameter},
          {{{4, 3, 2}, {3, 2}, {3, 2}}}),
      row("rms_norm", true, 1, {kSamples}, {{{4, 3}}, {{2, 3, 4}}, {{3, 1100}}, {{3, 0}}}),
      row("rms_norm with weight", true, 1, {kSamples, kParameter}, weighted, rms_norm_errors())};
}

}  // namespace accrue::test
