// Rows of arithmetic with two operands, and with numbers.
#include "accrue/autograd/ops/binary.h"
#include "accrue/tests/support/bad_call.h"
#include "accrue/tests/support/literal_sum.h"

#include <cmath>
#include <type_traits>

namespace accrue::test {
namespace {

enum class Op : std::uint8_t { add, sub, mul, div, maximum, minimum };
constexpr const char* kNames[] = {"add", "sub", "mul", "div", "maximum", "minimum"};
const char* name_of(Op op) { return kNames[static_cast<int>(op)]; }

float maximum(float a, float b) { return std::isnan(a) || a >= b ? a : b; }
float minimum(float a, float b) { return std::isnan(a) || a <= b ? a : b; }

template <class Left, class Right>
auto apply(Op op, const Left& a, const Right& b) {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::div:
      return a / b;
    case Op::maximum:
    case Op::minimum:
      break;
  }
  if constexpr (std::is_same_v<Right, double>) {
    return a / b;  // there is no maximum with a number
  } else {
    return op == Op::maximum ? maximum(a, b) : minimum(a, b);
  }
}

Array value(Op op, const Array& a, const Array& b) {
  Array y = zeros(broadcast_shapes(a.shape, b.shape, "reference"));
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const Shape index = index_of(i, y.shape);
    y[i] = apply(op, a[element_at(index, a.shape)], b[element_at(index, b.shape)]);
  }
  return y;
}

bool picks_one(Op op) { return op == Op::maximum || op == Op::minimum; }

/// The derivative with respect to operand `k`.
float factor(Op op, std::size_t k, float a, float b, float y) {
  if (picks_one(op)) {
    if (a == b) return 0.5f;
    return (a > b && (op == Op::maximum) == (k == 1)) || (a < b && (op == Op::maximum) == (k == 0))
               ? 0.0f
               : 1.0f;
  }
  switch (op) {
    case Op::add:
      return 1;
    case Op::sub:
      return k == 0 ? 1.0f : -1.0f;
    case Op::mul:
      return k == 0 ? b : a;
    default:
      break;
  }
  return k == 0 ? 1 / b : -(y / b);
}

/// factor() for each element of y.
Array factors(Op op, std::size_t k, const Arrays& x, const Array& y) {
  Array result = y;
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const Shape index = index_of(i, y.shape);
    const float a = x[0][element_at(index, x[0].shape)];
    const float b = x[1][element_at(index, x[1].shape)];
    result[i] = factor(op, k, a, b, y[i]);
  }
  return result;
}

/// A variable's gradient: products, summed in the order of sum() where the operand was stretched.
Array summed(const Array& factors, const Array& dy, const Shape& shape) {
  std::vector<std::vector<float>> terms(static_cast<std::size_t>(numel(shape)));
  for (std::int64_t i = 0; i < dy.numel(); ++i) {
    const std::int64_t element = element_at(index_of(i, dy.shape), shape);
    terms[static_cast<std::size_t>(element)].push_back(dy[i] * factors[i]);
  }
  Array dx = zeros(shape);
  for (std::int64_t e = 0; e < dx.numel(); ++e) {
    const std::vector<float>& list = terms[static_cast<std::size_t>(e)];
    const auto count = static_cast<std::int64_t>(list.size());
    dx[e] = shape == dy.shape ? list[0] : literal_sum<float>(count, [&](std::int64_t j) {
      return list[static_cast<std::size_t>(j)];
    });
  }
  return dx;
}

/// A parameter's gradient: one chain over rows that are not all zero. A batch of numbers has a row
/// per number.
Array chained(const Array& factors, const Array& dy, const Shape& shape, bool has_samples) {
  Array dx = zeros(shape);
  const int rank = dy.shape.rank();
  const std::int64_t row_size = rank == 0 || (rank == 1 && has_samples) ? 1 : dy.shape.back();
  for (std::int64_t begin = 0; begin < dy.numel(); begin += row_size) {
    const auto first = dy.values.begin() + begin;
    if (std::all_of(first, first + row_size, [](float v) { return v == 0; })) continue;
    for (std::int64_t i = begin; i < begin + row_size; ++i) {
      float& element = dx[element_at(index_of(i, dy.shape), shape)];
      element = std::fma(dy[i], factors[i], element);
    }
  }
  return dx;
}

std::vector<BadCall> errors_of(Op op) {
  const char* name = name_of(op);
  const auto message = [&](const char* rest) { return text("[", name, "] ", rest); };
  const Tensor x = Tensor::ones({2, 3});
  const Tensor doubles = Tensor::ones({2, 3}, DType::float64);
  const char* dtypes = "operands must have one dtype, got float32 and float64; convert with to()";
  const char* mixed =
      "arithmetic across different sample dimensions mixes samples, so its bits would depend on "
      "the micro-batch; reduce with Loss::from_rows or use invariant = false";
  const char* stretched =
      "an operand stretched along, or indexed by, samples mixes samples, so its bits would depend "
      "on the micro-batch; reduce with Loss::from_rows or use invariant = false";
  return {
      throws<ShapeError>(message("shapes must broadcast, got [2, 3] and [2, 4], which differ at "
                                 "dimension -1 (3 and 4)"),
                         {x, Tensor::ones({2, 4})}),
      throws<ShapeError>(message("shapes must broadcast, got [2, 3] and [0, 3], which differ at "
                                 "dimension -2 (2 and 0)"),
                         {x, Tensor::ones({0, 3})}),
      throws<ShapeError>(message("shapes must broadcast, got [3, 2, 3, 3] and [2, 3], which differ "
                                 "at dimension -2 (3 and 2)"),
                         {Tensor::ones({3, 2, 3, 3}), x}),
      throws<DTypeError>(message(dtypes), {x, doubles}),
      throws<DTypeError>(message("needs float32 or float64, got int64; convert with to()"),
                         {Tensor::arange(3), Tensor::arange(3)}),
      throws<StateError>(kUndefined, {x, Tensor()}),
      throws<StateError>(kUndefined, {Tensor(), x}),
      throws_in_window(message(mixed), {batch({2, 2}), batch({2, 2}, 1)}),
      throws_in_window(message(mixed), {batch({1, 2}), x.narrow(1, 0, 2)}),
      throws_in_window(message(stretched), {batch({2, 3}), x}),
      throws_in_window(message(stretched), {x, x.narrow(0, 0, 1)}),
      throws_in_window(
          message("the result must be sample-major in a window (dimension 0 counts samples), got "
                  "shape [3, 2] with samples in dimension 1; keep the batch dimension first or use "
                  "invariant = false"),
          {batch({3, 2}, 1), Tensor::ones({3, 1})})};
}

OpCase row(Op op, Role left, Role right, std::vector<std::vector<Shape>> shapes) {
  constexpr const char* kRoles[] = {"samples", "parameter", "other"};
  const auto role = [&](Role r) { return kRoles[static_cast<int>(r)]; };
  const bool has_samples = left == Role::samples || right == Role::samples;
  OpCase result;
  result.name = text(name_of(op), " of ", role(left), " and ", role(right));
  const Domain usual = picks_one(op) ? Domain::distinct : Domain::real;
  result.inputs = {{left, usual}, {right, op == Op::div ? Domain::nonzero : usual}};
  result.shapes = std::move(shapes);
  result.function = [op](auto x) { return apply(op, x[0], x[1]); };
  result.forward = [op](const Arrays& x) { return value(op, x[0], x[1]); };
  result.backward = [=](const Arrays& x, const Array& y, const Array& dy) {
    Arrays gradients;
    for (const std::size_t k : {0U, 1U}) {
      Array f = factors(op, k, x, y), incoming = dy;
      for (std::int64_t i = 0; i < dy.numel() && picks_one(op); ++i) {
        // What is not picked is +0, also where dy is not finite.
        incoming[i] = f[i] == 0 ? 0 : dy[i] * f[i];
        f[i] = 1;
      }
      const bool is_parameter = (k == 0 ? left : right) == Role::parameter;
      gradients.push_back(is_parameter ? chained(f, incoming, x[k].shape, has_samples)
                                       : summed(f, incoming, x[k].shape));
    }
    return gradients;
  };
  if (left == Role::other && right == Role::other) result.errors = errors_of(op);
  return result;
}

OpCase row_with_number(Op op, double number) {
  const auto constant = static_cast<float>(number);
  OpCase result;
  result.name = text(name_of(op), " with a number");
  result.inputs = {{Role::samples}};
  result.shapes = {{{4, 3}}, {{}}, {{5}}, {{0, 3}}, {{9, 67}}};
  result.function = [=](auto x) { return apply(op, x[0], number); };
  result.forward = [=](const Arrays& x) { return value(op, x[0], {{}, {constant}}); };
  result.backward = [=](const Arrays&, const Array&, const Array& dy) {
    if (op == Op::add || op == Op::sub) return Arrays{dy};
    return Arrays{value(op, dy, {{}, {constant}})};
  };
  result.errors = {
      throws<DTypeError>(
          text("[", name_of(op), "] needs float32 or float64, got int64; convert with to()"),
          {Tensor::arange(3)}),
      throws<StateError>(kUndefined, {Tensor()})};
  return result;
}

/// Each pair also the other way round.
std::vector<std::vector<Shape>> swapped(std::vector<std::vector<Shape>> shapes) {
  for (std::vector<Shape>& pair : shapes) std::swap(pair[0], pair[1]);
  return shapes;
}

}  // namespace

std::vector<OpCase> binary_cases() {
  // The right operand has the same value for all samples.
  const std::vector<std::vector<Shape>> shared = {{{4, 3}, {3}},
                                                  {{4, 3}, {1, 3}},
                                                  {{4, 3}, {}},
                                                  {{4, 3}, {1, 1}},
                                                  {{4}, {1}},
                                                  {{5}, {}},
                                                  {{3, 2, 3}, {2, 1}},
                                                  {{3, 2, 3}, {1, 2, 3}},
                                                  {{0, 3}, {3}},
                                                  {{4, 0}, {1}}};
  const std::vector<std::vector<Shape>> equal = {
      {{4, 3}, {4, 3}}, {{}, {}}, {{5}, {5}}, {{0, 3}, {0, 3}}, {{9, 67}, {9, 67}}};
  const std::vector<std::vector<Shape>> any = {{{2, 3}, {2, 3}},
                                               {{2, 1}, {1, 3}},
                                               {{2, 3}, {3}},
                                               {{}, {2, 3}},
                                               {{3}, {2, 1, 1}},
                                               {{2, 3, 2}, {3, 1}},
                                               {{1, 3}, {0, 3}},
                                               {{2, 0}, {2, 1}},
                                               {{4}, {4}}};
  std::vector<OpCase> rows;
  for (const Op op : {Op::add, Op::sub, Op::mul, Op::div, Op::maximum, Op::minimum}) {
    rows.push_back(row(op, Role::samples, Role::samples, equal));
    rows.push_back(row(op, Role::samples, Role::parameter, shared));
    rows.push_back(row(op, Role::parameter, Role::samples, swapped(shared)));
    rows.push_back(row(op, Role::other, Role::other, any));
    rows.push_back(row(op, Role::parameter, Role::other, any));
    rows.push_back(row(op, Role::other, Role::parameter, swapped(any)));
    if (!picks_one(op)) rows.push_back(row_with_number(op, 0.3));
  }
  return rows;
}

}  // namespace accrue::test
