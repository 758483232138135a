// Rows of sums, means and softmax.
#include "accrue/autograd/ops/reduce.h"
#include "accrue/autograd/ops/softmax.h"
#include "accrue/kernels/scalar/exp.h"
#include "accrue/kernels/scalar/log.h"
#include "accrue/tests/support/bad_call.h"
#include "accrue/tests/support/literal_sum.h"

#include <cmath>
#include <limits>

namespace accrue::test {
namespace {

using kernels::scalar::exp;
using kernels::scalar::log;
using Dims = std::vector<int>;

// ---- sums ----

/// The shape with 1 in place of the summed dimensions; all of them if `dims` is empty.
Shape reduced(const Shape& shape, const Dims& dims) {
  Shape result = shape;
  for (int d = 0; d < shape.rank() && dims.empty(); ++d) result[d] = 1;
  for (const int d : dims) result[d < 0 ? d + shape.rank() : d] = 1;
  return result;
}

Shape without_ones(const Shape& kept, const Shape& from, const Dims& dims) {
  Shape result;
  for (int d = 0; d < from.rank(); ++d) {
    bool is_summed = dims.empty();
    for (const int dim : dims) is_summed |= dim == d || dim + from.rank() == d;
    if (!is_summed) result.push_back(kept[d]);
  }
  return result;
}

Array sum_value(const Array& x, const Dims& dims, bool keep_dims) {
  const Shape kept = reduced(x.shape, dims);
  std::vector<std::vector<float>> terms(static_cast<std::size_t>(numel(kept)));
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    terms[static_cast<std::size_t>(element_at(index_of(i, x.shape), kept))].push_back(x[i]);
  }
  Array y{keep_dims ? kept : without_ones(kept, x.shape, dims), {}};
  for (const std::vector<float>& list : terms) {
    y.values.push_back(
        literal_sum<float>(static_cast<std::int64_t>(list.size()),
                           [&](std::int64_t j) { return list[static_cast<std::size_t>(j)]; }));
  }
  return y;
}

float count_of(const Shape& shape, const Dims& dims) {
  std::int64_t count = 1;
  for (int d = 0; d < shape.rank() && dims.empty(); ++d) count *= shape[d];
  for (const int d : dims) count *= shape[d < 0 ? d + shape.rank() : d];
  return static_cast<float>(count);
}

struct SumKind {
  bool is_mean = false;
  Dims dims = {};
  bool keep_dims = false;
};

OpCase sum_row(const char* name, Role role, std::vector<Shape> shapes, const SumKind& kind) {
  const auto [is_mean, dims, keep_dims] = kind;
  OpCase row;
  row.name = name;
  row.inputs = {{role}};
  for (const Shape& shape : shapes) row.shapes.push_back({shape});
  row.function = [=](auto x) {
    return is_mean ? mean(x[0], dims, keep_dims) : sum(x[0], dims, keep_dims);
  };
  row.forward = [=](const Arrays& x) {
    Array y = sum_value(x[0], dims, keep_dims);
    for (float& value : y.values) value = is_mean ? value / count_of(x[0].shape, dims) : value;
    return y;
  };
  row.backward = [=](const Arrays& x, const Array&, const Array& dy) {
    Array dx = x[0];
    const Shape kept = reduced(dx.shape, dims);
    for (std::int64_t i = 0; i < dx.numel(); ++i) {
      const float gradient = dy[element_at(index_of(i, dx.shape), kept)];
      dx[i] = is_mean ? gradient / count_of(dx.shape, dims) : gradient;
    }
    return Arrays{dx};
  };
  return row;
}

std::vector<BadCall> sum_errors(const char* name, Variable (*op)(const Variable&, const Dims&)) {
  const auto message = [&](const char* rest) { return text("[", name, "] ", rest); };
  const Tensor x = Tensor::ones({2, 3});
  const auto over = [=](Dims dims) { return [=](auto v) { return op(v[0], dims); }; };
  const char* mixes =
      "[sum] a sum over the sample dimension mixes samples, so its bits would depend on the "
      "micro-batch; reduce with Loss::from_rows or use invariant = false";
  return {
      throws<IndexError>(message("dim must lie in [-2, 1], got 2"), {x}, over({2})),
      throws<IndexError>(message("dim must lie in [-2, 1], got -3"), {x}, over({0, -3})),
      throws<IndexError>(message("dim must lie in [-1, 0], got 1"), {Tensor::ones({})}, over({1})),
      throws<ShapeError>(
          message("dims must name each dimension once, got 1 twice"), {x}, over({1, -1})),
      throws<DTypeError>("[sum] needs float32 or float64, got int64; convert with to()",
                         {Tensor::arange(3)}),
      throws<StateError>(kUndefined, {Tensor()}),
      throws_in_window(mixes, {batch({2, 3})}, over({})),
      throws_in_window(mixes, {batch({2, 3})}, over({0})),
      throws_in_window(mixes, {batch({3, 2}, 1)}, over({-1}))};
}

// ---- softmax ----

/// Calls `body(at)` for each slice along `dim`, where at(j) is the number of its j-th element.
template <class Body>
void for_each_slice(const Shape& shape, int dim, const Body& body) {
  const int d = shape.rank() == 0 ? 0 : (dim + shape.rank()) % shape.rank();
  const std::int64_t length = shape.rank() == 0 ? 1 : shape[d];
  const std::int64_t stride = product(shape, d + 1, shape.rank());
  for (std::int64_t start = 0; start < numel(shape); ++start) {
    if (start / stride % length != 0) continue;
    body(length, [=](std::int64_t j) { return start + j * stride; });
  }
}

Array softmax_value(const Array& x, int dim, bool is_log) {
  Array y = x;
  for_each_slice(x.shape, dim, [&](std::int64_t length, const auto& at) {
    float max = -std::numeric_limits<float>::infinity();
    for (std::int64_t j = 0; j < length; ++j) {
      if (x[at(j)] > max || std::isnan(x[at(j)])) max = x[at(j)];
    }
    max += 0;
    const float sum =
        literal_sum<float>(length, [&](std::int64_t j) { return exp(x[at(j)] - max); });
    for (std::int64_t j = 0; j < length; ++j) {
      y[at(j)] = is_log ? (x[at(j)] - max) - log(sum) : exp(x[at(j)] - max) / sum;
    }
  });
  return y;
}

Array softmax_gradient(const Array& y, const Array& dy, int dim, bool is_log) {
  Array dx = y;
  for_each_slice(y.shape, dim, [&](std::int64_t length, const auto& at) {
    const float k = literal_accumulate<float>(length, [&](float acc, std::int64_t j) {
      return is_log ? acc + dy[at(j)] : std::fma(dy[at(j)], y[at(j)], acc);
    });
    for (std::int64_t j = 0; j < length; ++j) {
      dx[at(j)] = is_log ? std::fma(-exp(y[at(j)]), k, dy[at(j)]) : y[at(j)] * (dy[at(j)] - k);
    }
  });
  return dx;
}

std::vector<BadCall> softmax_errors(Variable (*op)(const Variable&, int)) {
  const Tensor x = Tensor::ones({2, 3});
  const char* mixes =
      "[softmax] a softmax along the sample dimension mixes samples, so its bits would depend on "
      "the micro-batch; reduce with Loss::from_rows or use invariant = false";
  const auto along = [=](int dim) { return [=](auto v) { return op(v[0], dim); }; };
  return {
      throws<IndexError>("[softmax] dim must lie in [-2, 1], got 2", {x}, along(2)),
      throws<IndexError>("[softmax] dim must lie in [-2, 1], got -3", {x}, along(-3)),
      throws<IndexError>("[softmax] dim must lie in [-1, 0], got 1", {Tensor::ones({})}, along(1)),
      throws<DTypeError>("[softmax] needs float32 or float64, got int64; convert with to()",
                         {Tensor::arange(3)}),
      throws<StateError>(kUndefined, {Tensor()}),
      throws_in_window(mixes, {batch({2, 3})}, along(0)),
      throws_in_window(mixes, {batch({3, 2}, 1)}, along(-1)),
      throws_in_window(mixes, {batch({2})}, along(-1))};
}

OpCase softmax_row(bool is_log, Role role, int dim, std::vector<Shape> shapes) {
  Variable (*const op)(const Variable&, int) = is_log ? log_softmax : softmax;
  OpCase row;
  row.name = text(is_log ? "log_softmax" : "softmax", " along ", dim);
  row.inputs = {{role}};
  for (const Shape& shape : shapes) row.shapes.push_back({shape});
  row.function = [=](auto x) { return op(x[0], dim); };
  row.forward = [=](const Arrays& x) { return softmax_value(x[0], dim, is_log); };
  row.backward = [=](const Arrays&, const Array& y, const Array& dy) {
    return Arrays{softmax_gradient(y, dy, dim, is_log)};
  };
  if (role == Role::other) row.errors = softmax_errors(op);
  return row;
}

}  // namespace

std::vector<OpCase> reduce_cases() {
  const std::vector<Shape> any = {{4, 3}, {5}, {}, {2, 3, 2}, {0, 3}, {0}, {3, 0}, {9, 131}};
  std::vector<OpCase> rows;
  for (const bool is_mean : {false, true}) {
    const char* all = is_mean ? "mean" : "sum";
    rows.push_back(sum_row(all, Role::other, any, {is_mean}));
    rows.back().errors =
        is_mean ? sum_errors("mean", [](const Variable& x, const Dims& d) { return mean(x, d); })
                : sum_errors("sum", [](const Variable& x, const Dims& d) { return sum(x, d); });
    rows.push_back(sum_row(is_mean ? "mean of rows" : "sum of rows",
                           Role::samples,
                           {{4, 3}, {2, 3, 2}, {0, 3}, {3, 0}, {3, 1100}},
                           {is_mean, {-1}}));
    rows.push_back(sum_row(is_mean ? "mean over the middle" : "sum over the middle",
                           Role::samples,
                           {{3, 2, 4}, {2, 0, 3}, {3, 70, 5}},
                           {is_mean, {1}, true}));
    rows.push_back(sum_row(is_mean ? "mean over two" : "sum over two",
                           Role::other,
                           {{3, 2, 4}, {2, 0, 3}, {3, 40, 5}},
                           {is_mean, {2, 0}}));
  }
  for (const bool is_log : {false, true}) {
    const std::vector<Shape> shapes = {{4, 3}, {2, 3, 2}, {3, 1}, {0, 3}, {3, 0}, {3, 131}};
    rows.push_back(softmax_row(is_log, Role::samples, -1, shapes));
    rows.push_back(softmax_row(is_log, Role::samples, 1, {{3, 2, 4}, {2, 3, 1}, {2, 0, 3}}));
    rows.push_back(softmax_row(is_log, Role::other, 0, any));
  }
  return rows;
}

}  // namespace accrue::test
