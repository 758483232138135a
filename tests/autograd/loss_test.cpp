// Loss and LossWeight: row losses, their sum, and what it is divided by (contract 7, 14).
#include "accrue/autograd/loss.h"

#include "accrue/autograd/ops/losses.h"
#include "accrue/autograd/ops/views.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/literal_sum.h"

#include <cmath>

using namespace accrue;
using accrue::test::There;

namespace {

std::vector<float> values(const Tensor& x) { return x.to_vector<float>(); }

}  // namespace

TEST_CASE("autograd.loss: weights are integers until they are read") {
  CHECK(LossWeight().value() == 0);
  CHECK(LossWeight(7).value() == 7);
  // 0.1 ten times is not 1 in double, ten times 0.1 is.
  LossWeight weight({0, 0}, {0.1, 3});
  for (int i = 0; i < 10; ++i) weight.add(LossWeight({1, 0}, {0.1, 3}));
  CHECK(weight.value() == 10 * 0.1);
  weight.add(LossWeight({0, 2}, {0.1, 3}));
  CHECK(weight.value() == 10 * 0.1 + 2 * 3.0);
  CHECK(weight == LossWeight({10, 2}, {0.1, 3}));
  LossWeight count(3);
  count.add(LossWeight(std::int64_t{1} << 60));
  CHECK(count == LossWeight((std::int64_t{1} << 60) + 3));
}

TEST_CASE("autograd.loss: a weight of nothing takes any kind") {
  LossWeight weight;
  weight.add(LossWeight({1}, {0.5}));
  weight.add(LossWeight());
  CHECK(weight == LossWeight({1}, {0.5}));
}

TEST_CASE("autograd.loss: weights refuse negative counts and other class weights") {
  CHECK_THROWS_WITH_AS(LossWeight(-1), "[loss] weight must be >= 0, got -1", ValueError);
  CHECK_THROWS_WITH_AS(
      LossWeight({1, -2}, {1, 1}), "[loss] counts must be >= 0, got -2", ValueError);
  CHECK_THROWS_WITH_AS(LossWeight({1, 2}, {1}),
                       "[loss] each class must have a count and a weight, got 2 counts and 1 "
                       "weights",
                       ShapeError);
  CHECK_THROWS_WITH_AS(LossWeight({1, 0}, {1, NAN}),
                       "[loss] class weights must be finite, got nan for class 1",
                       ValueError);
  CHECK_THROWS_AS(LossWeight({1, 0}, {1, -INFINITY}), ValueError);
  LossWeight weight({1}, {0.5});
  const char* message =
      "[loss] losses of one window must have the same class weights, got two sets";
  CHECK_THROWS_WITH_AS(weight.add(LossWeight({1}, {0.25})), message, StateError);
  CHECK_THROWS_WITH_AS(weight.add(LossWeight(3)), message, StateError);
  CHECK(weight == LossWeight({1}, {0.5}));
}

TEST_CASE("autograd.loss: rows are flattened, summed in the order of contract 11, divided once") {
  std::vector<float> rows(2000);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = 1.0F / static_cast<float>(i + 3);
  const Variable x = Variable::leaf(There::from(rows, {50, 40}));
  const Loss loss = Loss::from_rows(x, 7);
  CHECK(loss.rows().shape() == Shape{2000});
  const float sum = test::literal_sum<float>(
      2000, [&](std::int64_t i) { return rows[static_cast<std::size_t>(i)]; });
  CHECK(loss.sum().item<float>() == sum);
  CHECK(loss.mean() == static_cast<double>(sum / 7));
  loss.sum().backward();
  CHECK(values(x.grad()) == std::vector<float>(2000, 1));
}

TEST_CASE("autograd.loss: the mean over nothing is NaN") {
  CHECK(std::isnan(Loss::from_rows(There::zeros({0}), 0).mean()));
  CHECK(std::isnan(Loss::from_rows(There::zeros({3}), 0).mean()));
  CHECK(Loss::from_rows(There::zeros({0}), 0).sum().item<float>() == 0);
}

TEST_CASE("autograd.loss: losses add and scale row by row") {
  const Variable a = Variable::leaf(There::of<float>({1, 2}));
  const Variable b = Variable::leaf(There::of<float>({10, 20}));
  const Loss loss = Loss::from_rows(a, 2) + 0.5 * Loss::from_rows(b, 2);
  CHECK(values(loss.rows().value()) == std::vector<float>{6, 12});
  CHECK(loss.mean() == 9);
  loss.sum().backward();
  CHECK(values(a.grad()) == std::vector<float>{1, 1});
  CHECK(values(b.grad()) == std::vector<float>{0.5, 0.5});
}

TEST_CASE("autograd.loss: scalars, other rows and other weights are refused") {
  const Loss two = Loss::from_rows(There::zeros({2}), 2);
  CHECK_THROWS_WITH_AS(Loss::from_rows(There::zeros({}), 1),
                       "[loss] row losses must have a dimension, got a scalar; do not sum over "
                       "samples",
                       ShapeError);
  CHECK_THROWS_WITH_AS(two + Loss::from_rows(There::zeros({3}), 2),
                       "[loss] losses can be added when they have the same rows, got [2] and [3]",
                       ShapeError);
  CHECK_THROWS_WITH_AS(two + Loss::from_rows(There::zeros({2}), 3),
                       "[loss] losses can be added when they have the same weight, got 2 and 3; "
                       "scale the rows and use Loss::from_rows",
                       StateError);
  CHECK_THROWS_WITH_AS(
      Loss::from_rows(There::zeros({2}), -1), "[loss] weight must be >= 0, got -1", ValueError);
}

TEST_CASE("autograd.loss: cross-entropy weighs the targets that are not ignored") {
  const Tensor target = There::of<std::int64_t>({0, 2, -100, 2});
  CHECK(cross_entropy_weight(target, {}) == LossWeight(3));
  CHECK(cross_entropy_weight(target, {.ignore_index = 2}) == LossWeight(2));
  const Tensor weights = There::of<float>({0.5, 1, 0.25});
  CHECK(cross_entropy_weight(target, {.class_weights = weights}) ==
        LossWeight({1, 0, 2}, {0.5, 1, 0.25}));
}

TEST_CASE("autograd.loss: a target outside the class weights is refused, not counted") {
  const Tensor weights = There::of<float>({0.5, 1});
  CHECK_THROWS_WITH_AS(
      cross_entropy_weight(There::of<std::int64_t>({0, 1'000'000'000}), {.class_weights = weights}),
      "[cross_entropy] target must lie in [0, 2), got 1000000000 at index 1; check the label "
      "encoding or set ignore_index (now -100)",
      IndexError);
}

TEST_CASE("autograd.loss: class weights written before backward are an error") {
  const Variable logits = Variable::leaf(There::zeros({1, 2}));
  Tensor weights = There::of<float>({0.5, 1});
  const Variable loss =
      cross_entropy_rows(logits, There::of<std::int64_t>({0}), {.class_weights = weights});
  const std::uint64_t version = weights.version();
  weights.fill(3);
  const std::string message = text(
      "[cross_entropy] a tensor saved for backward must not be written before it, got version ",
      version + 1,
      " instead of ",
      version,
      "; write to a clone() or after backward");
  CHECK_THROWS_WITH_AS(loss.backward(), message.c_str(), StateError);
  CHECK(!logits.grad().defined());
}
