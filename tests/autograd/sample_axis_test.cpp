// What each operation does to the knowledge of which dimension counts samples (contract 13).
#include "accrue/core/sample_axis.h"

#include "accrue/autograd/autograd.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>
#include <functional>
#include <ostream>

namespace accrue {

std::ostream& operator<<(std::ostream& out, SampleAxis axis) {
  return out << "dim " << axis.dim << ", rows " << axis.rows;
}

}  // namespace accrue

using namespace accrue;
using accrue::test::There;

namespace {

using Op = std::function<Variable(const Variable&)>;

/// `op` on a tensor of `shape` whose samples lie along `axis`; outside a window nothing throws.
struct Row {
  const char* name;
  Shape shape;
  SampleAxis axis;
  Op op;
  SampleAxis wanted;
};

constexpr SampleAxis kNone{}, kMixed = SampleAxis::mixed();
constexpr SampleAxis k0{0, 1}, k1{1, 1}, k2{2, 1};

Variable make(const Shape& shape, SampleAxis axis) {
  return Variable(There::ones(shape).with_sample_axis(axis));
}

void check(std::span<const Row> rows) {
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CAPTURE(row.shape);
    CHECK(row.op(make(row.shape, row.axis)).value().sample_axis() == row.wanted);
  }
}

Op mean_of(int dim, bool keep = false) {
  return [=](const Variable& x) { return mean(x, {dim}, keep); };
}
Op softmax_of(int dim) {
  return [=](const Variable& x) { return softmax(x, dim); };
}
Op reshaped(const Shape& shape) {
  return [=](const Variable& x) { return reshape(x, shape); };
}

}  // namespace

TEST_CASE("autograd.sample_axis: arithmetic keeps the samples of either operand, or mixes them") {
  const auto plus = [](const Shape& shape, SampleAxis axis = {}) {
    return [=](const Variable& x) { return x + make(shape, axis); };
  };
  const Row rows[] = {{"number", {4, 3}, k0, [](auto& x) { return x * 2.0; }, k0},
                      {"relu", {4, 3}, {0, 2}, [](auto& x) { return relu(x); }, {0, 2}},
                      {"same", {4, 3}, k0, plus({4, 3}, k0), k0},
                      {"constant", {4, 3}, k0, plus({4, 3}), k0},
                      {"of the right operand", {4, 3}, kNone, plus({4, 3}, k0), k0},
                      {"behind new dimensions", {4, 3}, k0, plus({5, 4, 3}), k1},
                      {"along the last dimension", {3, 4}, k1, plus({4}, k0), k1},
                      {"different dimensions", {4, 4}, k0, plus({4, 4}, k1), kMixed},
                      {"different rows", {4, 3}, k0, plus({4, 3}, {0, 2}), kMixed},
                      {"stretched samples", {1, 3}, k0, plus({4, 3}), kMixed}};
  check(rows);
}

TEST_CASE("autograd.sample_axis: sums move it, and drop it where they sum it") {
  const Row rows[] = {{"behind", {4, 3, 2}, k0, mean_of(2), k0},
                      {"before", {3, 4, 2}, k1, mean_of(0), k0},
                      {"before, kept", {3, 4, 2}, k1, mean_of(0, true), k1},
                      {"two before",
                       {2, 2, 4},
                       k2,
                       [](auto& x) {
                         return sum(x, {0, 1});
                       },
                       k0},
                      {"itself", {4, 3}, k0, mean_of(0), kMixed},
                      {"itself, kept", {4, 3}, k0, mean_of(0, true), kMixed},
                      {"all", {4, 3}, k0, [](auto& x) { return sum(x); }, kMixed}};
  check(rows);
}

TEST_CASE("autograd.sample_axis: softmax and losses keep it") {
  const Tensor target = There::zeros({4}, DType::int64);
  const Row rows[] = {
      {"softmax", {4, 3}, k0, softmax_of(-1), k0},
      {"softmax of another dimension", {4, 3, 2}, k0, softmax_of(1), k0},
      {"cross_entropy",
       {4, 3},
       {0, 2},
       [&](auto& x) { return cross_entropy_rows(x, target); },
       {0, 2}},
      {"mse",
       {4, 3},
       k0,
       [](auto& x) {
         return mse_rows(x, make({4, 3}, k0));
       },
       k0},
      {"mse of numbers", {4}, k0, [](auto& x) { return mse_rows(x, make({4}, k0)); }, k0},
      {"mse of tokens",
       {4, 3, 2},
       k0,
       [](auto& x) {
         return mse_rows(x, make({4, 3, 2}, {}));
       },
       k0}};
  check(rows);
}

TEST_CASE("autograd.sample_axis: products keep it in dimension 0") {
  const auto layer = [](const Shape& shape) {
    return [=](const Variable& x) { return linear(x, make(shape, {})); };
  };
  const auto times = [](const Variable& x) { return matmul(x, make({3, 2}, {})); };
  const Row rows[] = {{"linear", {4, 3}, {0, 2}, layer({2, 3}), {0, 2}},
                      {"linear of tokens", {4, 5, 3}, k0, layer({2, 3}), k0},
                      {"linear of samples behind", {5, 4, 3}, k1, layer({2, 3}), k1},
                      {"linear over samples", {4, 3}, k1, layer({2, 3}), kMixed},
                      {"matmul", {4, 3}, k0, times, k0},
                      {"matmul over samples", {4, 3}, k1, times, kMixed}};
  check(rows);
}

TEST_CASE("autograd.sample_axis: views move it, or mark that samples mixed") {
  const auto turn = [](std::vector<int> dims) {
    return [=](const Variable& x) { return permute(x, dims); };
  };
  const auto grow = [](const Shape& shape) {
    return [=](const Variable& x) { return expand(x, shape); };
  };
  const auto join = [](int dim, SampleAxis axis) {
    return [=](const Variable& x) {
      const Variable parts[] = {x, make({4, 2}, axis)};
      return cat(parts, dim);
    };
  };
  const Row rows[] = {
      {"permute", {4, 3, 2}, k0, turn({2, 0, 1}), k1},
      {"transpose", {4, 3}, k0, [](auto& x) { return transpose(x, 0, 1); }, k1},
      {"to rows", {4, 3, 2}, k0, reshaped({-1, 2}), {0, 3}},
      {"from rows", {12, 2}, {0, 3}, reshaped({4, 6}), k0},
      {"flatten", {4, 3, 2}, k0, [](auto& x) { return flatten(x, 1); }, k0},
      {"across samples", {4, 3}, k0, reshaped({3, 4}), kMixed},
      {"samples behind", {3, 4}, k1, reshaped({12}), kMixed},
      {"of nothing", {0, 3}, k0, reshaped({0, 1, 3}), k0},
      {"expand", {4, 1}, k0, grow({4, 3}), k0},
      {"expand before", {4, 1}, k0, grow({5, 4, 1}), k1},
      {"expand samples", {1, 3}, k0, grow({4, 3}), kMixed},
      {"select behind", {4, 3}, k0, [](auto& x) { return select(x, 1, 0); }, k0},
      {"select before", {3, 4}, k1, [](auto& x) { return select(x, 0, 0); }, k0},
      {"select samples", {4, 3}, k0, [](auto& x) { return select(x, 0, 0); }, kMixed},
      {"narrow", {4, 3}, k0, [](auto& x) { return narrow(x, 1, 0, 2); }, k0},
      {"narrow samples", {4, 3}, k0, [](auto& x) { return narrow(x, 0, 0, 2); }, kMixed},
      {"slice samples", {4, 3}, k0, [](auto& x) { return slice(x, 0, 0, 4, 2); }, kMixed},
      {"cat", {4, 2}, k0, join(1, k0), k0},
      {"cat with a constant", {4, 2}, k0, join(1, {}), kMixed},
      {"cat of samples", {4, 2}, k0, join(0, k0), kMixed}};
  check(rows);
}

TEST_CASE("autograd.sample_axis: a layer behind an operation that lost the samples says so") {
  const Variable w = Variable::leaf(There::ones({2, 4}));
  Window window;
  window.begin({{.nominal_size = 3, .count = 1}, 3, 0, 1});
  const MicroBatch scope(window, 0, 3);
  const Variable x = make({3, 4}, k0);
  CHECK_THROWS_WITH_AS(
      linear(reshape(x, {2, 6, 1}) * make({1, 1, 4}, {}), w),
      "[linear] an operand was reduced over samples, or lost them in a view, so the "
      "gradient's bits would depend on the micro-batch; keep the batch dimension "
      "first, such numbers to metrics, or use invariant = false",
      StateError);
  CHECK_THROWS_WITH_AS(
      linear(permute(make({3, 2, 4}, k0), {1, 0, 2}), w),
      "[linear] the input of a parameter must be sample-major in a window "
      "(dimension 0 counts samples), got shape [2, 3, 4] with samples in dimension "
      "1; keep the batch dimension first or use invariant = false",
      StateError);
}

TEST_CASE("autograd.sample_axis: metrics over samples are free, and no gradient sees them") {
  const Variable w = Variable::leaf(There::ones({2, 4}));
  const Variable scale = Variable::leaf(There::ones({2}));
  const Tensor target = There::zeros({3}, DType::int64);
  Window window;
  window.begin({{.nominal_size = 3, .count = 1}, 3, 0, 1});
  const MicroBatch scope(window, 0, 3);
  const Variable x = make({3, 4}, k0), logits = linear(x, w);
  const auto refusal = [](const char* op) {
    return std::string("[") + op +
           "] an operand was reduced over samples, or lost them in a view, so the gradient's bits "
           "would depend on the micro-batch; keep the batch dimension first, such numbers to "
           "metrics, or use invariant = false";
  };
  const char* mixes =
      "[sum] a sum over the sample dimension mixes samples, so its bits would depend on the "
      "micro-batch; reduce with Loss::from_rows or use invariant = false";

  const Variable hits(eq(argmax(logits, -1), target.with_sample_axis({0, 1})).to(DType::float32));
  CHECK(mean(hits).item<float>() == 1);
  CHECK(mean(logits.detach()).item<float>() == 4);
  CHECK_THROWS_WITH_AS(mean(logits), mixes, StateError);
  Variable average, reshaped_average;
  {
    const NoGrad no_grad;
    average = mean(logits, {0});
    CHECK(norm(logits).item<float>() == std::sqrt(96.0F));
    CHECK(max(logits, 0).values.value().sample_axis() == kMixed);
    CHECK(argmax(logits, 0).sample_axis() == kMixed);
    CHECK(mean(relu(logits - average) * 2.0).item<float>() == 0);
  }
  CHECK(average.value().sample_axis() == kMixed);
  reshaped_average = reshape(average, {1, 2}).value().clone().to(DType::float64).to(DType::float32);
  Tensor copied = There::zeros({2, 2});
  copied[0].copy_from(average.value());
  for (const Variable& mixed :
       {average, reshaped_average, average * 2.0, exp(average), Variable(copied[1])}) {
    CHECK_THROWS_WITH_AS(logits - mixed, refusal("sub").c_str(), StateError);
    CHECK_THROWS_WITH_AS(mixed * scale, refusal("mul").c_str(), StateError);
  }
  CHECK_THROWS_WITH_AS(linear(x - mean(x, {0}), w), refusal("linear").c_str(), StateError);
  CHECK_THROWS_WITH_AS(
      mse_rows(logits, (logits.detach() - average)), refusal("mse").c_str(), StateError);
  CHECK_THROWS_WITH_AS(cross_entropy_rows(logits, target, {.class_weights = average.value()}),
                       refusal("cross_entropy").c_str(),
                       StateError);
  CHECK(!Variable::leaf(average.value()).value().sample_axis().is_mixed());
  CHECK(!Variable::leaf(copied).value().sample_axis().is_mixed());
}
