// Wrong calls of views.
#include "accrue/autograd/ops/views.h"
#include "accrue/tests/support/bad_call.h"

namespace accrue::test {
namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 40;

std::string indexes(const char* op) {
  return text("[",
              op,
              "] indexing along the sample dimension mixes samples, so its bits would "
              "depend on the micro-batch; reduce with Loss::from_rows or use invariant = false");
}

/// A wrong call of `op` on `x`; the arguments are bound in `call`.
template <class Type, class Call>
BadCall wrong(std::string message, const Tensor& x, const Call& call) {
  return throws<Type>(std::move(message), {x}, [=](auto v) { return call(v[0]); });
}

template <class Call>
BadCall wrong_in_window(std::string message, const Tensor& x, const Call& call) {
  return throws_in_window(std::move(message), {x}, [=](auto v) { return call(v[0]); });
}

std::vector<BadCall> reshape_errors() {
  const Tensor x = Tensor::ones({2, 3});
  const auto to = [](Shape shape) { return [=](auto& v) { return reshape(v, shape); }; };
  const auto flat = [](int a, int b) { return [=](auto& v) { return flatten(v, a, b); }; };
  return {wrong<ShapeError>("[reshape] shape must hold 6 elements, got [4, 2]", x, to({4, 2})),
          wrong<ShapeError>("[reshape] shape must hold 6 elements, got [4, -1]", x, to({4, -1})),
          wrong<ShapeError>("[reshape] shape must hold 6 elements, got []", x, to({})),
          wrong<ShapeError>("[reshape] at most one size may be -1, got [-1, -1]", x, to({-1, -1})),
          wrong<ShapeError>("[reshape] sizes must be >= -1, got [-2, 3]", x, to({-2, 3})),
          wrong<ShapeError>("[reshape] -1 must have one possible value, got [-1, 0] for an empty "
                            "tensor; give all sizes",
                            Tensor::ones({0, 3}),
                            to({-1, 0})),
          wrong<ShapeError>("[reshape] the product of the sizes must fit in 63 bits, got "
                            "[1099511627776, 1099511627776]",
                            x,
                            to({kHuge, kHuge})),
          wrong<StateError>(kUndefined, Tensor(), to({1})),
          wrong<IndexError>("[flatten] dim must lie in [-2, 1], got 2", x, flat(0, 2)),
          wrong<IndexError>("[flatten] dim must lie in [-2, 1], got -3", x, flat(-3, 1)),
          wrong<ShapeError>("[flatten] start must not lie behind end, got 1 and 0", x, flat(1, 0))};
}

std::vector<BadCall> permute_errors() {
  const Tensor x = Tensor::ones({2, 3});
  const auto by = [](std::vector<int> dims) { return [=](auto& v) { return permute(v, dims); }; };
  const auto swap = [](int a, int b) { return [=](auto& v) { return transpose(v, a, b); }; };
  return {
      wrong<ShapeError>(
          "[permute] dims must name each of the 2 dimensions once, got 1 entries", x, by({0})),
      wrong<ShapeError>("[permute] dims must name each of the 2 dimensions once, got 3 entries",
                        x,
                        by({0, 1, 2})),
      wrong<ShapeError>(
          "[permute] dims must name each dimension once, got 1 twice", x, by({1, -1})),
      wrong<IndexError>("[permute] dim must lie in [-2, 1], got 2", x, by({0, 2})),
      wrong<IndexError>("[permute] dim must lie in [-2, 1], got -3", x, by({0, -3})),
      wrong<StateError>(kUndefined, Tensor(), by({})),
      wrong<IndexError>("[transpose] dim must lie in [-2, 1], got 2", x, swap(0, 2)),
      wrong<IndexError>("[transpose] dim must lie in [-2, 1], got -3", x, swap(-3, 0)),
      wrong<IndexError>("[transpose] dim must lie in [-1, 0], got 1", Tensor::ones({}), swap(0, 1)),
      wrong<StateError>(kUndefined, Tensor(), swap(0, 0))};
}

std::vector<BadCall> expand_errors() {
  const Tensor x = Tensor::ones({2, 3});
  const auto to = [](Shape shape) { return [=](auto& v) { return expand(v, shape); }; };
  const char* stretched =
      "[expand] stretching the sample dimension mixes samples, so its bits would depend on the "
      "micro-batch; reduce with Loss::from_rows or use invariant = false";
  return {
      wrong<ShapeError>(
          "[expand] only sizes of 1 can be stretched, got [2, 3] to [2, 4]", x, to({2, 4})),
      wrong<ShapeError>(
          "[expand] only sizes of 1 can be stretched, got [2, 3] to [0, 3]", x, to({0, 3})),
      wrong<ShapeError>(
          "[expand] only sizes of 1 can be stretched, got [2, 3] to [-1, 2, 3]", x, to({-1, 2, 3})),
      wrong<ShapeError>(
          "[expand] only sizes of 1 can be stretched, got [2, 3] to [2, -2]", x, to({2, -2})),
      wrong<ShapeError>(
          "[expand] the new shape must have at least 2 dimensions, got [3]", x, to({3})),
      wrong<ShapeError>("[expand] the product of the sizes must fit in 63 bits, got "
                        "[1099511627776, 1099511627776]",
                        Tensor::ones({1, 1}),
                        to({kHuge, kHuge})),
      wrong<StateError>(kUndefined, Tensor(), to({1})),
      wrong_in_window(stretched, batch({1, 3}), to({2, 3})),
      wrong_in_window(stretched, batch({3, 1}, 1), to({3, 2}))};
}

std::vector<BadCall> index_errors() {
  const Tensor x = Tensor::ones({2, 3});
  const Tensor scalar = Tensor::ones({});
  const auto at = [](int dim, std::int64_t i) {
    return [=](auto& v) { return select(v, dim, i); };
  };
  const auto from = [](int dim, std::int64_t start, std::int64_t length) {
    return [=](auto& v) { return narrow(v, dim, start, length); };
  };
  const auto outside = [](const char* got) {
    return text("[narrow] [start, start + length) must lie in [0, 3), got ", got);
  };
  return {
      wrong<IndexError>(
          "[select] index must lie in [-3, 2], got 3 for dimension 1 of [2, 3]", x, at(1, 3)),
      wrong<IndexError>(
          "[select] index must lie in [-2, 1], got -3 for dimension 0 of [2, 3]", x, at(0, -3)),
      wrong<IndexError>("[select] dim must lie in [-2, 1], got 2", x, at(2, 0)),
      wrong<IndexError>("[select] index must lie in [0, -1], got 0 for dimension 0 of [0, 3]",
                        Tensor::ones({0, 3}),
                        at(0, 0)),
      wrong<IndexError>("[select] tensor must have a dimension, got a scalar", scalar, at(0, 0)),
      wrong<StateError>(kUndefined, Tensor(), at(0, 0)),
      wrong_in_window(indexes("select"), batch({2, 3}), at(0, 1)),
      wrong_in_window(indexes("select"), batch({3, 2}, 1), at(-1, 0)),
      wrong<IndexError>(outside("start 2 and length 2"), x, from(1, 2, 2)),
      wrong<IndexError>(outside("start 4 and length 0"), x, from(1, 4, 0)),
      wrong<IndexError>(outside("start -1 and length 1"), x, from(1, -1, 1)),
      wrong<IndexError>(outside("start 0 and length -1"), x, from(1, 0, -1)),
      wrong<IndexError>(
          outside("start 1 and length 9223372036854775807"), x, from(1, 1, INT64_MAX)),
      wrong<IndexError>("[narrow] dim must lie in [-2, 1], got -3", x, from(-3, 0, 1)),
      wrong<IndexError>(
          "[narrow] tensor must have a dimension, got a scalar", scalar, from(0, 0, 1)),
      wrong_in_window(indexes("narrow"), batch({2, 3}), from(0, 0, 1)),
      wrong_in_window(indexes("narrow"), batch({2, 3}), from(0, 2, 0))};
}

std::vector<BadCall> slice_errors() {
  const Tensor x = Tensor::ones({2, 3});
  const auto by = [](int dim, std::int64_t step) {
    return [=](auto& v) { return slice(v, dim, 0, 2, step); };
  };
  return {wrong<ValueError>("[slice] step must be >= 1, got 0", x, by(1, 0)),
          wrong<ValueError>("[slice] step must be >= 1, got -1", x, by(1, -1)),
          wrong<IndexError>("[slice] dim must lie in [-2, 1], got 2", x, by(2, 1)),
          wrong<IndexError>(
              "[slice] tensor must have a dimension, got a scalar", Tensor::ones({}), by(0, 1)),
          wrong<StateError>(kUndefined, Tensor(), by(0, 1)),
          wrong_in_window(indexes("slice"), batch({3, 3}), by(0, 1)),
          wrong_in_window(indexes("slice"), batch({2, 3}), by(0, 2))};
}

std::vector<BadCall> cat_errors() {
  const Tensor x = Tensor::ones({2, 3});
  const auto along = [](int dim) { return [=](auto v) { return cat(v, dim); }; };
  const char* mixes =
      "[cat] joining along, or across different, sample dimensions mixes samples, so its bits "
      "would depend on the micro-batch; reduce with Loss::from_rows or use invariant = false";
  return {throws<ValueError>("[cat] at least one tensor must be given, got none", {}, along(0)),
          throws<ShapeError>("[cat] shapes must agree except in dimension 0, got [2, 3] and [2, 4]",
                             {x, Tensor::ones({2, 4})},
                             along(0)),
          throws<ShapeError>("[cat] shapes must agree except in dimension 1, got [2, 3] and [0, 3]",
                             {x, Tensor::ones({0, 3})},
                             along(-1)),
          throws<ShapeError>("[cat] shapes must agree except in dimension 0, got [2, 3] and [0]",
                             {x, Tensor::ones({0})},
                             along(0)),
          throws<ShapeError>("[cat] tensors must have a dimension, got a scalar",
                             {Tensor::ones({}), Tensor::ones({})},
                             along(0)),
          throws<DTypeError>("[cat] dtypes must agree, got float32 and float64; convert with to()",
                             {x, x.to(DType::float64)},
                             along(0)),
          throws<IndexError>("[cat] dim must lie in [-2, 1], got 2", {x, x}, along(2)),
          throws<StateError>(
              "[cat] tensors must be defined, got one that is not", {x, Tensor()}, along(0)),
          throws_in_window(mixes, {batch({2, 3}), batch({2, 3})}, along(0)),
          throws_in_window(mixes, {batch({2, 2}), batch({2, 2}, 1)}, along(1)),
          throws_in_window(mixes, {batch({2, 3}), x}, along(1))};
}

}  // namespace

std::vector<OpCase> view_error_cases() {
  const auto row = [](const char* name, std::vector<BadCall> errors) {
    OpCase result;
    result.name = name;
    result.errors = std::move(errors);
    return result;
  };
  return {row("reshape", reshape_errors()),
          row("permute", permute_errors()),
          row("expand", expand_errors()),
          row("index", index_errors()),
          row("slice", slice_errors()),
          row("cat", cat_errors())};
}

}  // namespace accrue::test
