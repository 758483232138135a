// Rows of where, and the wrong calls of comparisons.
#include "accrue/autograd/ops/compare.h"
#include "accrue/tests/support/bad_call.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/literal_sum.h"

#include <cmath>

namespace accrue::test {
namespace {

/// Element `i` of a result chooses the first operand where this is true, a fixed pattern per shape
/// of a sample: samples at the end of a batch do not change it.
bool chooses_first(std::int64_t i, const Shape& shape) {
  const std::int64_t in_sample = shape.rank() == 0 ? 1 : i % product(shape, 1, shape.rank());
  return in_sample % 3 != 1;
}

Tensor condition_for(const Shape& shape) {
  Tensor condition = Tensor::zeros(shape, DType::boolean);
  bool* out = condition.mutable_data<bool>();
  for (std::int64_t i = 0; i < condition.numel(); ++i) out[i] = chooses_first(i, shape);
  return condition;
}

Array where_value(const Array& a, const Array& b) {
  Array y = zeros(broadcast_shapes(a.shape, b.shape, "reference"));
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const Shape index = index_of(i, y.shape);
    y[i] =
        chooses_first(i, y.shape) ? a[element_at(index, a.shape)] : b[element_at(index, b.shape)];
  }
  return y;
}

/// dy where operand `k` was chosen, +0 elsewhere.
Array chosen(const Array& dy, std::size_t k) {
  Array part = dy;
  for (std::int64_t i = 0; i < dy.numel(); ++i) {
    if (chooses_first(i, dy.shape) != (k == 0)) part[i] = 0;
  }
  return part;
}

/// The gradient of a stretched variable, summed in the order of sum().
Array summed(const Array& part, const Shape& shape) {
  if (part.shape == shape) return part;
  std::vector<std::vector<float>> terms(static_cast<std::size_t>(numel(shape)));
  for (std::int64_t i = 0; i < part.numel(); ++i) {
    const std::int64_t element = element_at(index_of(i, part.shape), shape);
    terms[static_cast<std::size_t>(element)].push_back(part[i]);
  }
  Array dx = zeros(shape);
  for (std::int64_t e = 0; e < dx.numel(); ++e) {
    const std::vector<float>& list = terms[static_cast<std::size_t>(e)];
    dx[e] = literal_sum<float>(static_cast<std::int64_t>(list.size()),
                               [&](std::int64_t j) { return list[static_cast<std::size_t>(j)]; });
  }
  return dx;
}

/// A parameter's gradient: one chain over rows that are not all zero.
Array chained(const Array& part, const Shape& shape) {
  Array dx = zeros(shape);
  const std::int64_t row_size = part.shape.rank() == 0 ? 1 : part.shape.back();
  for (std::int64_t begin = 0; begin < part.numel(); begin += row_size) {
    const auto first = part.values.begin() + begin;
    if (std::all_of(first, first + row_size, [](float v) { return v == 0; })) continue;
    for (std::int64_t i = begin; i < begin + row_size; ++i) {
      float& element = dx[element_at(index_of(i, part.shape), shape)];
      element = std::fma(part[i], 1.0f, element);
    }
  }
  return dx;
}

std::vector<BadCall> where_errors() {
  const Tensor x = Tensor::ones({2, 3}), yes = Tensor::ones({2, 3}, DType::boolean);
  const auto with = [](Tensor condition) {
    return [=](auto v) { return where(there(condition), v[0], v[1]); };
  };
  const char* stretched =
      "[where] an operand stretched along, or indexed by, samples mixes samples, so its bits would "
      "depend on the micro-batch; reduce with Loss::from_rows or use invariant = false";
  const char* mixed =
      "[where] arithmetic across different sample dimensions mixes samples, so its bits would "
      "depend on the micro-batch; reduce with Loss::from_rows or use invariant = false";
  return {
      throws<DTypeError>("[where] operands must have one dtype, got float32 and float64; convert "
                         "with to()",
                         {x, Tensor::ones({2, 3}, DType::float64)},
                         with(yes)),
      throws<DTypeError>(
          "[where] operands must have dtype bool, got float32; convert with to()", {x, x}, with(x)),
      throws<ShapeError>("[where] shapes must broadcast, got [2, 3] and [2, 4], which differ at "
                         "dimension -1 (3 and 4)",
                         {x, Tensor::ones({2, 4})},
                         with(yes)),
      throws<ShapeError>("[where] shapes must broadcast, got [4] and [2, 3], which differ at "
                         "dimension -1 (3 and 4)",
                         {x, x},
                         with(Tensor::ones({4}, DType::boolean))),
      throws<StateError>(kUndefined, {x, x}, with(Tensor())),
      throws<StateError>(kUndefined, {x, Tensor()}, with(yes)),
      throws_in_window(stretched, {batch({2, 3}), x}, with(yes)),
      throws_in_window(mixed, {batch({2, 2}), batch({2, 2}, 1)}, with(yes.narrow(1, 0, 2)))};
}

OpCase where_row(Role left, Role right, std::vector<std::vector<Shape>> shapes) {
  OpCase row;
  row.name = left == Role::samples ? "where of samples" : "where";
  row.inputs = {{left}, {right}};
  row.shapes = std::move(shapes);
  row.function = [](auto x) {
    const Shape shape = broadcast_shapes(x[0].shape(), x[1].shape(), "where");
    return where(there(condition_for(shape)), x[0], x[1]);
  };
  row.forward = [](const Arrays& x) { return where_value(x[0], x[1]); };
  row.backward = [=](const Arrays& x, const Array&, const Array& dy) {
    return Arrays{summed(chosen(dy, 0), x[0].shape),
                  right == Role::parameter ? chained(chosen(dy, 1), x[1].shape)
                                           : summed(chosen(dy, 1), x[1].shape)};
  };
  if (left == Role::other) row.errors = where_errors();
  return row;
}

OpCase compare_errors(const char* name, Tensor (*op)(const Variable&, const Variable&)) {
  const auto message = [&](const char* rest) { return text("[", name, "] ", rest); };
  const Tensor x = Tensor::ones({2, 3});
  OpCase row;
  row.name = name;
  row.function = [=](auto v) { return Variable(op(v[0], v[1])); };
  row.errors = {
      throws<DTypeError>(
          message("operands must have one dtype, got float32 and int64; convert with to()"),
          {x, Tensor::arange(3)}),
      throws<ShapeError>(message("shapes must broadcast, got [2, 3] and [2], which differ at "
                                 "dimension -1 (3 and 2)"),
                         {x, Tensor::ones({2})}),
      throws<StateError>(kUndefined, {Tensor(), Tensor()}),
      throws_in_window(
          message(
              "arithmetic across different sample dimensions mixes samples, so its bits would "
              "depend on the micro-batch; reduce with Loss::from_rows or use invariant = false"),
          {batch({2, 2}), batch({2, 2}, 1)})};
  return row;
}

}  // namespace

std::vector<OpCase> compare_cases() {
  std::vector<OpCase> rows = {
      where_row(Role::samples,
                Role::samples,
                {{{4, 3}, {4, 3}}, {{0, 3}, {0, 3}}, {{9, 67}, {9, 67}}, {{2, 3, 2}, {2, 3, 2}}}),
      where_row(Role::samples,
                Role::parameter,
                {{{4, 3}, {3}}, {{4, 3}, {1, 3}}, {{4, 3}, {}}, {{3, 2, 3}, {2, 1}}}),
      where_row(Role::other,
                Role::other,
                {{{2, 3}, {2, 3}}, {{2, 1}, {1, 3}}, {{}, {2, 3}}, {{2, 0}, {2, 1}}, {{}, {}}}),
      compare_errors("eq", eq),
      compare_errors("ne", ne),
      compare_errors("lt", lt),
      compare_errors("le", le),
      compare_errors("gt", gt),
      compare_errors("ge", ge)};
  rows.back().errors.push_back(throws<ValueError>(
      "[ge] a number compared with int64 must be whole, got 0.5; convert with to()",
      {Tensor::arange(3)},
      [](auto v) { return Variable(ge(v[0], 0.5)); }));
  return rows;
}

}  // namespace accrue::test
