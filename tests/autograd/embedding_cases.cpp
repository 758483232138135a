// Rows of embedding.
#include "accrue/autograd/ops/embedding.h"
#include "accrue/autograd/ops/unary.h"
#include "accrue/tests/support/bad_call.h"

#include <limits>

namespace accrue::test {
namespace {

Array value(const Arrays& x) {
  Array y = x[1];
  const std::int64_t width = x[0].shape[1];
  y.shape.push_back(width);
  y.values.clear();
  for (const float index : x[1].values) {
    const auto row = x[0].values.begin() + static_cast<std::int64_t>(index) * width;
    y.values.insert(y.values.end(), row, row + width);
  }
  return y;
}

Arrays gradients(const Arrays& x, const Array& dy, std::int64_t padding) {
  Arrays result = {zeros(x[0].shape), {}};
  const std::int64_t width = x[0].shape[1];
  for (std::int64_t n = 0; n < x[1].numel(); ++n) {
    const auto row = static_cast<std::int64_t>(x[1][n]);
    for (std::int64_t e = 0; e < width && row != padding; ++e) {
      result[0][row * width + e] += dy[n * width + e];
    }
  }
  return result;
}

std::vector<BadCall> embedding_errors() {
  const Tensor table = Tensor::ones({5, 3}), good = Tensor::of<std::int64_t>({0, 4});
  const auto indices = [](std::int64_t a, std::int64_t b) {
    return Tensor::of<std::int64_t>({a, b});
  };
  const auto index = [](std::int64_t got, int position) {
    return text("[embedding] indices must lie in [0, 5), got ",
                got,
                " at position ",
                position,
                "; check the vocabulary");
  };
  const auto shape = [](const char* got) {
    return text("[embedding] the table must be [V, E], got ", got);
  };
  const auto dtype = [](const char* got) {
    return text("[embedding] indices must be int64, got ", got, "; convert with to()");
  };
  const auto padded = [](std::int64_t padding_idx) {
    return [=](auto v) { return embedding(v[0], v[1].value(), padding_idx); };
  };
  const auto not_major = [](const char* got) {
    return text(
        "[embedding] the indices into a parameter must be sample-major in a window (dimension 0 "
        "counts samples), got shape ",
        got,
        "; keep the batch dimension first or use invariant = false");
  };
  constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
  return {
      throws<ShapeError>(shape("[5]"), {Tensor::ones({5}), good}),
      throws<ShapeError>(shape("[5, 3, 1]"), {Tensor::ones({5, 3, 1}), good}),
      throws<ShapeError>(shape("[]"), {Tensor(), good}),
      throws<DTypeError>(dtype("float32"), {table, Tensor::ones({2})}),
      throws<DTypeError>(dtype("int32"), {table, good.to(DType::int32)}),
      throws<DTypeError>("[embedding] needs float32 or float64, got int64; convert with to()",
                         {table.to(DType::int64), good}),
      throws<IndexError>(index(5, 0), {table, indices(5, 0)}),
      throws<IndexError>(index(-1, 1), {table, indices(4, -1)}),
      throws<IndexError>(index(kLowest, 1), {table, indices(0, kLowest)}),
      throws<IndexError>("[embedding] indices must lie in [0, 0), got 0 at position 0; check the "
                         "vocabulary",
                         {Tensor::ones({0, 3}), good}),
      throws<IndexError>(
          "[embedding] padding_idx must lie in [-5, 5), got 5", {table, good}, padded(5)),
      throws<IndexError>(
          "[embedding] padding_idx must lie in [-5, 5), got -6", {table, good}, padded(-6)),
      throws_in_window(not_major("[2] without a known sample dimension"), {table, good}),
      throws_in_window(not_major("[3, 2] with samples in dimension 1"),
                       {table, Tensor::zeros({3, 2}, DType::int64).with_sample_axis({1, 1})}),
      throws_in_window("[embedding] the table must be a parameter in a window, got the result of "
                       "an operation; use invariant = false",
                       {table, good.with_sample_axis({0, 1})},
                       [](auto v) { return embedding(neg(v[0]), v[1].value()); })};
}

OpCase row(const char* name,
           Role table,
           std::optional<std::int64_t> padding_idx,
           std::vector<BadCall> errors = {}) {
  OpCase result;
  result.name = name;
  result.inputs = {{table}, {Role::samples, Domain::rows}};
  result.shapes = {
      {{5, 3}, {4}}, {{4, 2}, {3, 2}}, {{3, 1}, {0}}, {{3, 0}, {4}}, {{4, 67}, {9, 3}}};
  result.function = [=](auto x) { return embedding(x[0], x[1].value(), padding_idx); };
  result.forward = value;
  result.backward = [=](const Arrays& x, const Array&, const Array& dy) {
    const std::int64_t padding = padding_idx.value_or(-9);
    return gradients(x, dy, padding == -1 ? x[0].shape[0] - 1 : padding);
  };
  result.errors = std::move(errors);
  result.is_derivative = !padding_idx;
  return result;
}

}  // namespace

std::vector<OpCase> embedding_cases() {
  return {row("embedding", Role::parameter, std::nullopt, embedding_errors()),
          row("embedding with padding", Role::parameter, 1),
          row("embedding with padding from the end", Role::parameter, -1),
          row("embedding of a table that an operation made", Role::other, std::nullopt)};
}

}  // namespace accrue::test
