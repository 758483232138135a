// Rows of index_select and gather.
#include "accrue/autograd/ops/index.h"
#include "accrue/tests/support/bad_call.h"
#include "accrue/tests/support/device.h"

namespace accrue::test {
namespace {

/// `count` indices below `size`, with repetitions.
std::vector<std::int64_t> indices(std::int64_t count, std::int64_t size) {
  std::vector<std::int64_t> result;
  for (std::int64_t k = 0; k < count; ++k) result.push_back((k * k + 1) % size);
  return result;
}

/// Where element `i` of a result of shape `shape` comes from in an operand of shape `from`, when
/// its index along `dim` is `pick`.
std::int64_t source(
    std::int64_t i, const Shape& shape, const Shape& from, int dim, std::int64_t pick) {
  Shape index = index_of(i, shape);
  index[dim] = pick;
  std::int64_t element = 0;
  for (int d = 0; d < from.rank(); ++d) element = element * from[d] + index[d];
  return element;
}

/// Which index along the dimension element `i` of the result names.
using Picks = std::function<std::int64_t(std::int64_t i, const Shape& result, const Shape& from)>;

OpCase row(
    const char* name, Role role, int dim, std::int64_t count, const Picks& picks, Function op) {
  const auto result_shape = [=](const Shape& from) {
    Shape shape = from;
    shape[dim] = count;
    return shape;
  };
  OpCase result;
  result.name = name;
  result.inputs = {{role}};
  result.function = std::move(op);
  result.forward = [=](const Arrays& x) {
    Array y = zeros(result_shape(x[0].shape));
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      y[i] = x[0][source(i, y.shape, x[0].shape, dim, picks(i, y.shape, x[0].shape))];
    }
    return y;
  };
  result.backward = [=](const Arrays& x, const Array&, const Array& dy) {
    Array dx = zeros(x[0].shape);
    for (std::int64_t i = 0; i < dy.numel(); ++i) {
      dx[source(i, dy.shape, dx.shape, dim, picks(i, dy.shape, dx.shape))] += dy[i];
    }
    return Arrays{dx};
  };
  return result;
}

OpCase select_row(Role role, int dim, std::int64_t count, std::vector<std::vector<Shape>> shapes) {
  const Picks picks = [=](std::int64_t i, const Shape& result, const Shape& from) {
    return indices(count, from[dim])[static_cast<std::size_t>(index_of(i, result)[dim])];
  };
  OpCase result = row("index_select", role, dim, count, picks, [=](auto x) {
    return index_select(x[0], dim, there(Tensor::from(indices(count, x[0].size(dim)), {count})));
  });
  result.shapes = std::move(shapes);
  return result;
}

/// The place that element `i` of a result with `count` elements along `dim` names: the same in
/// every sample.
std::int64_t gathered(std::int64_t i, const Shape& result, const Shape& from, int dim) {
  const std::int64_t in_sample = dim == 0 ? i : i % product(result, 1, result.rank());
  return (in_sample * 5 + 2) % from[dim];
}

OpCase gather_row(Role role, int dim, std::int64_t count, std::vector<std::vector<Shape>> shapes) {
  const Picks picks = [=](std::int64_t i, const Shape& result, const Shape& from) {
    return gathered(i, result, from, dim);
  };
  OpCase result = row("gather", role, dim, count, picks, [=](auto x) {
    Shape shape = x[0].shape();
    shape[dim] = count;
    Tensor index = Tensor::empty(shape, DType::int64);
    std::int64_t* out = index.template mutable_data<std::int64_t>();
    for (std::int64_t i = 0; i < index.numel(); ++i) out[i] = gathered(i, shape, x[0].shape(), dim);
    return gather(x[0], dim, there(index));
  });
  result.shapes = std::move(shapes);
  return result;
}

constexpr const char* kMixes =
    " mixes samples, so its bits would depend on the micro-batch; reduce with Loss::from_rows or "
    "use "
    "invariant = false";

std::vector<BadCall> select_errors() {
  const Tensor x = Tensor::ones({2, 3});
  const auto with = [](int dim, Tensor index) {
    return [=](auto v) { return index_select(v[0], dim, there(index)); };
  };
  const Tensor good = Tensor::of<std::int64_t>({0, 1});
  const auto wrong = [](const char* rest) { return text("[index_select] ", rest); };
  const auto mixes = [&](const char* what) { return text("[index_select] ", what, kMixes); };
  return {
      throws<IndexError>(wrong("indices must lie in [0, 3), got 3 at position 1"),
                         {x},
                         with(1, Tensor::of<std::int64_t>({2, 3}))),
      throws<IndexError>(wrong("indices must lie in [0, 2), got -1 at position 0"),
                         {x},
                         with(0, Tensor::of<std::int64_t>({-1}))),
      throws<IndexError>(
          wrong("indices must lie in [0, 2), got -9223372036854775808 at position 0"),
          {x},
          with(0, Tensor::of<std::int64_t>({INT64_MIN}))),
      throws<IndexError>(wrong("dim must lie in [-2, 1], got 2"), {x}, with(2, good)),
      throws<DTypeError>(wrong("the index must be int64, got int32; convert with to()"),
                         {x},
                         with(0, good.to(DType::int32))),
      throws<ShapeError>(
          wrong("needs an index of one dimension and an operand of at least one, got "
                "[1, 2] and [2, 3]"),
          {x},
          with(0, good.unsqueeze(0))),
      throws<ShapeError>(
          wrong("needs an index of one dimension and an operand of at least one, got [2] and []"),
          {Tensor::ones({})},
          with(0, good)),
      throws<StateError>(kUndefined, {Tensor()}, with(0, good)),
      throws<StateError>(kUndefined, {x}, with(0, Tensor())),
      throws_in_window(
          mixes("indexing along the sample dimension"), {batch({2, 3})}, with(0, good)),
      throws_in_window(mixes("indexing a parameter"), {x}, with(0, good)),
      throws_in_window(mixes("indexing a parameter"), {x}, with(0, good.with_sample_axis({0, 1}))),
      throws_in_window(mixes("indexing samples by samples"),
                       {batch({2, 3})},
                       with(1, good.with_sample_axis({0, 1})))};
}

std::vector<BadCall> gather_errors() {
  const Tensor x = Tensor::ones({2, 3});
  const auto with = [](int dim, Tensor index) {
    return [=](auto v) { return gather(v[0], dim, there(index)); };
  };
  const auto wrong = [](const char* rest) { return text("[gather] ", rest); };
  const auto mixes = [&](const char* what) { return text("[gather] ", what, kMixes); };
  const Tensor good = Tensor::of<std::int64_t>({{0, 1}, {1, 1}});
  return {throws<IndexError>(wrong("indices must lie in [0, 3), got 3 at position 2"),
                             {x},
                             with(1, Tensor::of<std::int64_t>({{0, 1}, {3, 1}}))),
          throws<IndexError>(wrong("dim must lie in [-2, 1], got -3"), {x}, with(-3, good)),
          throws<DTypeError>(
              wrong("the index must be int64, got float32; convert with to()"), {x}, with(1, x)),
          throws<ShapeError>(
              wrong("the index must have the rank of the operand and be no larger but in "
                    "dimension 1, got [2] for [2, 3]"),
              {x},
              with(1, Tensor::of<std::int64_t>({0, 1}))),
          throws<ShapeError>(
              wrong("the index must have the rank of the operand and be no larger but in "
                    "dimension 1, got [3, 1] for [2, 3]"),
              {x},
              with(1, Tensor::zeros({3, 1}, DType::int64))),
          throws<StateError>(kUndefined, {Tensor()}, with(0, good)),
          throws_in_window(
              mixes("indexing along the sample dimension"), {batch({2, 3})}, with(0, good)),
          throws_in_window(mixes("indexing across different sample dimensions"),
                           {batch({2, 3})},
                           with(1, good.narrow(0, 0, 1))),
          throws_in_window(mixes("indexing a parameter"), {x}, with(1, good))};
}

}  // namespace

std::vector<OpCase> index_cases() {
  std::vector<OpCase> rows = {
      select_row(Role::samples, 1, 5, {{{4, 3}}, {{2, 3, 2}}, {{0, 3}}, {{9, 67}}}),
      select_row(Role::other, 0, 4, {{{3, 2}}, {{5}}, {{2, 3, 2}}, {{3, 0}}, {{40, 300}}}),
      select_row(Role::other, 1, 0, {{{3, 2}}}),
      gather_row(Role::samples, 1, 4, {{{4, 3}}, {{2, 3, 2}}, {{0, 3}}, {{9, 67}}}),
      gather_row(Role::other, 0, 4, {{{3, 2}}, {{5}}, {{2, 3, 2}}, {{3, 0}}})};
  rows[1].errors = select_errors();
  rows[4].errors = gather_errors();
  return rows;
}

}  // namespace accrue::test
