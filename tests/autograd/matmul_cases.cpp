// Rows of matrix products.
#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/matmul.h"
#include "accrue/tests/support/bad_call.h"
#include "accrue/tests/support/literal_sum.h"

#include <cmath>

namespace accrue::test {
namespace {

std::vector<BadCall> matmul_errors() {
  const Tensor a = Tensor::ones({2, 3}), b = Tensor::ones({3, 5});
  const auto shapes = [](const char* got) {
    return text("[matmul] operands must be [..., M, K] and [..., K, N], got ", got);
  };
  const auto dtypes = [](const char* got) {
    return text("[matmul] operands must have one dtype, got ", got, "; convert with to()");
  };
  const char* mixes =
      "[matmul] a sum over samples or a right operand that depends on samples mixes samples, so "
      "its bits would depend on the micro-batch; reduce with Loss::from_rows or use invariant = "
      "false";
  const char* whole =
      "[backward] in a window a parameter must be used by operations that add rows (linear, or "
      "arithmetic with the batch), got a gradient that arrived whole; use invariant = false";
  return {
      throws<ShapeError>(shapes("[2, 3] and [4, 5]"), {a, Tensor::ones({4, 5})}),
      throws<ShapeError>(shapes("[2, 3] and [2, 3]"), {a, a}),
      throws<ShapeError>(shapes("[2, 0] and [1, 3]"), {Tensor::ones({2, 0}), Tensor::ones({1, 3})}),
      throws<ShapeError>(shapes("[3] and [3, 5]"), {Tensor::ones({3}), b}),
      throws<ShapeError>(shapes("[2, 3] and [3]"), {a, Tensor::ones({3})}),
      throws<ShapeError>(shapes("[7, 2, 3] and [7, 2, 5]"),
                         {Tensor::ones({7, 2, 3}), Tensor::ones({7, 2, 5})}),
      throws<ShapeError>(shapes("[] and [3, 5]"), {Tensor::ones({}), b}),
      throws<ShapeError>(shapes("[] and [3, 5]"), {Tensor(), b}),
      throws<ShapeError>(shapes("[2, 3] and []"), {a, Tensor()}),
      throws<ShapeError>("[matmul] shapes must broadcast, got [2] and [3], which differ at "
                         "dimension -1 (2 and 3)",
                         {Tensor::ones({2, 2, 3}), Tensor::ones({3, 3, 5})}),
      throws<DTypeError>(dtypes("float32 and float64"), {a, b.to(DType::float64)}),
      throws<DTypeError>(dtypes("float64 and float32"), {a.to(DType::float64), b}),
      throws<DTypeError>(dtypes("float32 and uint8"), {a, b.to(DType::uint8)}),
      throws<DTypeError>("[matmul] needs float32 or float64, got int32; convert with to()",
                         {a.to(DType::int32), b.to(DType::int32)}),
      throws_in_window(mixes, {batch({3, 2}, 1), Tensor::ones({2, 5})}),
      throws_in_window(mixes, {a, batch({3, 2}, 1)}),
      throws_in_window(mixes, {batch({2, 2}), batch({2, 2})}),
      throws_in_window(mixes, {batch({2, 3, 4}), Tensor::ones({2, 4, 3})}),
      throws_in_window(mixes, {Tensor::ones({2, 3, 4}), batch({2, 4, 3})}),
      throws_in_window(mixes, {batch({2, 2, 3, 4}), batch({2, 4, 3})}),
      throws_in_window(mixes, {batch({3, 2, 4}, 1), batch({3, 4, 2}, 2)}),
      throws_in_window(whole, {batch({2, 3}), b}, [](auto v) {
        const Variable y = matmul(v[0], v[1]);
        Engine({}).run(y, Tensor::ones(y.shape(), y.dtype(), y.device()));
        return y;
      })};
}

Shape leading(const Shape& shape) {
  Shape result;
  for (int d = 0; d < shape.rank() - 2; ++d) result.push_back(shape[d]);
  return result;
}

Shape with_matrix(Shape dims, std::int64_t rows, std::int64_t cols) {
  dims.push_back(rows);
  dims.push_back(cols);
  return dims;
}

/// x, or the transpose of its matrices, for each index of `dims`.
Array expanded(const Array& x, const Shape& dims, bool transposed) {
  const std::int64_t rows = x.shape[x.shape.rank() - 2], cols = x.shape.back();
  Array result = zeros(transposed ? with_matrix(dims, cols, rows) : with_matrix(dims, rows, cols));
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    const Shape index = index_of(i, result.shape);
    Shape dims_index = leading(index);
    const std::int64_t r = index[index.rank() - 2], c = index.back();
    const std::int64_t matrix = element_at(dims_index, leading(x.shape));
    result[i] = x[matrix * rows * cols + (transposed ? c * cols + r : r * cols + c)];
  }
  return result;
}

/// Products of matrices with equal leading dimensions: one chain per output.
Array product(const Array& a, const Array& b) {
  const int rank = a.shape.rank();
  const std::int64_t rows = a.shape[rank - 2], terms = a.shape.back(), cols = b.shape.back();
  Array c = zeros(with_matrix(leading(a.shape), rows, cols));
  for (std::int64_t i = 0; i < c.numel(); ++i) {
    const std::int64_t matrix = i / (rows * cols), r = i / cols % rows, col = i % cols;
    for (std::int64_t k = 0; k < terms; ++k) {
      c[i] =
          std::fma(a[(matrix * rows + r) * terms + k], b[(matrix * terms + k) * cols + col], c[i]);
    }
  }
  return c;
}

/// The sum over leading dimensions that were stretched from `shape`.
Array summed(const Array& x, const Shape& shape) {
  if (x.shape == shape) return x;
  std::vector<std::vector<float>> terms(static_cast<std::size_t>(numel(shape)));
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    terms[static_cast<std::size_t>(element_at(index_of(i, x.shape), shape))].push_back(x[i]);
  }
  Array result = zeros(shape);
  for (std::int64_t e = 0; e < result.numel(); ++e) {
    const std::vector<float>& list = terms[static_cast<std::size_t>(e)];
    result[e] = literal_sum<float>(static_cast<std::int64_t>(list.size()), [&](std::int64_t j) {
      return list[static_cast<std::size_t>(j)];
    });
  }
  return result;
}

Shape joint_leading(const Arrays& x) {
  return broadcast_shapes(leading(x[0].shape), leading(x[1].shape), "reference");
}

OpCase row(const char* name,
           std::vector<Role> roles,
           std::vector<std::vector<Shape>> shapes,
           std::vector<BadCall> errors = {}) {
  OpCase result;
  result.name = name;
  for (const Role role : roles) result.inputs.push_back({role});
  result.shapes = std::move(shapes);
  result.function = [](auto x) { return matmul(x[0], x[1]); };
  result.forward = [](const Arrays& x) {
    const Shape dims = joint_leading(x);
    return product(expanded(x[0], dims, false), expanded(x[1], dims, false));
  };
  result.backward = [](const Arrays& x, const Array&, const Array& dy) {
    const Shape dims = joint_leading(x);
    return Arrays{summed(product(dy, expanded(x[1], dims, true)), x[0].shape),
                  summed(product(expanded(x[0], dims, true), dy), x[1].shape)};
  };
  result.errors = std::move(errors);
  return result;
}

}  // namespace

std::vector<OpCase> matmul_cases() {
  constexpr Role kSamples = Role::samples, kOther = Role::other;
  const std::vector<std::vector<Shape>> plain = {
      {{4, 3}, {3, 5}}, {{2, 0}, {0, 3}}, {{0, 4}, {4, 3}}, {{3, 2}, {2, 0}}, {{9, 67}, {67, 33}}};
  return {row("matmul", {kOther, kOther}, plain, matmul_errors()),
          row("matmul of samples", {kSamples, kOther}, plain),
          row("matmul of matrices that are samples",
              {kSamples, kSamples},
              {{{3, 2, 2}, {3, 2, 2}}, {{2, 2, 1, 3}, {2, 2, 3, 1}}, {{3, 9, 17}, {3, 17, 33}}}),
          row("matmul with stretched dimensions",
              {kOther, kOther},
              {{{2, 1, 2, 2}, {3, 2, 1}}, {{2, 3}, {2, 3, 2}}, {{2, 2, 3}, {3, 2}}})};
}

}  // namespace accrue::test
