// Rows of maxima and minima along a dimension, and of norms.
#include "accrue/autograd/ops/extremum.h"
#include "accrue/autograd/ops/reduce.h"
#include "accrue/tests/support/bad_call.h"
#include "accrue/tests/support/literal_sum.h"

#include <cmath>
#include <string_view>

namespace accrue::test {
namespace {

/// The slices of `shape` along `dim`: element j of slice (before, after) is number
/// (before * length + j) * stride + after.
struct Slices {
  std::int64_t count = 1, length = 1, stride = 1;

  Slices(const Shape& shape, int dim) {
    if (shape.rank() == 0) return;
    const int d = dim < 0 ? dim + shape.rank() : dim;
    count = product(shape, 0, d);
    length = shape[d];
    stride = product(shape, d + 1, shape.rank());
  }
  std::int64_t size() const { return count * stride; }
  std::int64_t element(std::int64_t slice, std::int64_t j) const {
    return (slice / stride * length + j) * stride + slice % stride;
  }
};

Shape reduced(const Shape& shape, int dim, bool keep_dim) {
  Shape result;
  for (int d = 0; d < shape.rank(); ++d) {
    const bool is_dim = d == dim || d == dim + shape.rank();
    if (!is_dim || keep_dim) result.push_back(is_dim ? 1 : shape[d]);
  }
  return result;
}

/// The first largest (smallest) element of a slice, or its first NaN.
std::int64_t place(const Array& x, const Slices& slices, std::int64_t slice, bool largest) {
  std::int64_t best = 0;
  for (std::int64_t j = 1; j < slices.length; ++j) {
    const float a = x[slices.element(slice, best)], b = x[slices.element(slice, j)];
    if (std::isnan(a)) break;
    if (std::isnan(b) || (largest ? b > a : b < a)) best = j;
  }
  return best;
}

std::vector<BadCall> extremum_errors(const char* name,
                                     std::function<void(const Variable&, int)> op) {
  const auto message = [&](const char* rest) { return text("[", name, "] ", rest); };
  const auto along = [=](int dim) {
    return [=](auto v) {
      op(v[0], dim);
      return v[0];
    };
  };
  const std::string mixes = message(
      "an extremum along the sample dimension mixes samples, so its bits would depend on "
      "the micro-batch; reduce with Loss::from_rows or use invariant = false");
  const Tensor x = Tensor::ones({2, 3});
  std::vector<BadCall> calls = {
      throws<IndexError>(message("dim must lie in [-2, 1], got 2"), {x}, along(2)),
      throws<IndexError>(message("dim must lie in [-2, 1], got -3"), {x}, along(-3)),
      throws<IndexError>(message("dim must lie in [-1, 0], got 1"), {Tensor::ones({})}, along(1)),
      throws<IndexError>(message("the dimension must hold an element, got shape [2, 0] along 1"),
                         {Tensor::ones({2, 0})},
                         along(1)),
      throws<DTypeError>(message("needs float32 or float64, got int64; convert with to()"),
                         {Tensor::arange(3)},
                         along(0)),
      throws<StateError>(kUndefined, {Tensor()}, along(0))};
  if (!std::string_view(name).starts_with("arg")) {  // places are not recorded, so they may mix
    calls.push_back(throws_in_window(mixes, {batch({2, 3})}, along(0)));
    calls.push_back(throws_in_window(mixes, {batch({3, 2}, 1)}, along(-1)));
  }
  return calls;
}

OpCase extremum_row(
    bool largest, Role role, int dim, bool keep_dim, const std::vector<Shape>& shapes) {
  const char* name = largest ? "max" : "min";
  OpCase row;
  row.name = text(name, " along ", dim);
  row.inputs = {{role, Domain::distinct}};
  for (const Shape& shape : shapes) row.shapes.push_back({shape});
  row.function = [=](auto x) {
    return largest ? max(x[0], dim, keep_dim).values : min(x[0], dim, keep_dim).values;
  };
  row.forward = [=](const Arrays& x) {
    const Slices slices(x[0].shape, dim);
    Array y{reduced(x[0].shape, dim, keep_dim), {}};
    for (std::int64_t slice = 0; slice < slices.size(); ++slice) {
      y.values.push_back(x[0][slices.element(slice, place(x[0], slices, slice, largest))]);
    }
    return y;
  };
  row.backward = [=](const Arrays& x, const Array&, const Array& dy) {
    const Slices slices(x[0].shape, dim);
    Array dx = zeros(x[0].shape);
    for (std::int64_t slice = 0; slice < slices.size(); ++slice) {
      dx[slices.element(slice, place(x[0], slices, slice, largest))] += dy[slice];
    }
    return Arrays{dx};
  };
  if (role == Role::other && !keep_dim) {
    row.errors =
        extremum_errors(name, [=](const Variable& x, int d) { largest ? max(x, d) : min(x, d); });
  }
  return row;
}

// ---- norms ----

OpCase norm_row(Role role, int dim, bool keep_dim, const std::vector<Shape>& shapes) {
  OpCase row;
  row.name = text("norm along ", dim);
  row.inputs = {{role, Domain::nonzero}};
  for (const Shape& shape : shapes) row.shapes.push_back({shape});
  row.function = [=](auto x) { return norm(x[0], {dim}, keep_dim); };
  row.forward = [=](const Arrays& x) {
    const Slices slices(x[0].shape, dim);
    Array y{reduced(x[0].shape, dim, keep_dim), {}};
    for (std::int64_t slice = 0; slice < slices.size(); ++slice) {
      y.values.push_back(std::sqrt(literal_sum<float>(slices.length, [&](std::int64_t j) {
        const float value = x[0][slices.element(slice, j)];
        return value * value;
      })));
    }
    return y;
  };
  row.backward = [=](const Arrays& x, const Array& y, const Array& dy) {
    const Slices slices(x[0].shape, dim);
    Array dx = x[0];
    for (std::int64_t slice = 0; slice < slices.size(); ++slice) {
      const float ratio = y[slice] == 0 ? 0 : dy[slice] / y[slice];
      for (std::int64_t j = 0; j < slices.length; ++j) dx[slices.element(slice, j)] *= ratio;
    }
    return Arrays{dx};
  };
  return row;
}

std::vector<BadCall> norm_errors() {
  const Tensor x = Tensor::ones({2, 3});
  const auto over = [=](std::vector<int> dims) { return [=](auto v) { return norm(v[0], dims); }; };
  const char* mixes =
      "[norm] a norm over the sample dimension mixes samples, so its bits would depend on the "
      "micro-batch; reduce with Loss::from_rows or use invariant = false";
  return {throws<IndexError>("[norm] dim must lie in [-2, 1], got 2", {x}, over({2})),
          throws<ShapeError>(
              "[norm] dims must name each dimension once, got 1 twice", {x}, over({1, -1})),
          throws<DTypeError>("[norm] needs float32 or float64, got int64; convert with to()",
                             {Tensor::arange(3)},
                             over({0})),
          throws<StateError>(kUndefined, {Tensor()}, over({0})),
          throws_in_window(mixes, {batch({2, 3})}, over({})),
          throws_in_window(mixes, {batch({2, 3})}, over({0}))};
}

}  // namespace

std::vector<OpCase> extremum_cases() {
  std::vector<OpCase> rows;
  for (const bool largest : {true, false}) {
    rows.push_back(extremum_row(
        largest, Role::samples, -1, false, {{4, 3}, {2, 3, 2}, {0, 3}, {3, 1}, {3, 131}}));
    rows.push_back(extremum_row(largest, Role::samples, 1, true, {{3, 2, 4}, {2, 70, 3}}));
    rows.push_back(
        extremum_row(largest, Role::other, 0, false, {{4, 3}, {5}, {}, {2, 3, 2}, {2, 0}}));
  }
  OpCase places;
  places.name = "argmax";
  places.errors = extremum_errors("argmax", [](const Variable& x, int d) { argmax(x, d); });
  rows.push_back(places);
  places.name = "argmin";
  places.errors = extremum_errors("argmin", [](const Variable& x, int d) { argmin(x, d); });
  rows.push_back(places);
  rows.push_back(
      norm_row(Role::samples, -1, false, {{4, 3}, {2, 3, 2}, {0, 3}, {3, 0}, {3, 1100}}));
  rows.push_back(norm_row(Role::samples, 1, true, {{3, 2, 4}, {2, 0, 3}, {3, 70, 5}}));
  rows.push_back(norm_row(Role::other, 0, false, {{4, 3}, {5}, {0, 2}}));
  rows.back().errors = norm_errors();
  return rows;
}

}  // namespace accrue::test
