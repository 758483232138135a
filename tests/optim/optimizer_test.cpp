// What optimizers share: whole steps or none, learning rates, state by name.
#include "accrue/optim/optimizer.h"

#include "accrue/autograd/ops/binary.h"
#include "accrue/optim/sgd.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>

namespace accrue::optim {
namespace {

using test::There;

Variable leaf(const Shape& shape, double value = 1) {
  return Variable::leaf(There::full(shape, value));
}

TEST_CASE("optim.optimizer: parameters without gradient or without requires_grad stay") {
  Variable moving = leaf({2}), idle = leaf({2}), frozen = leaf({2});
  SGD sgd({moving, idle, frozen}, {.lr = 1, .momentum = .9, .weight_decay = .5});
  sgd.step();
  CHECK(moving.value().to_vector<float>() == std::vector<float>{1, 1});
  CHECK(sgd.state().size() == 1);

  moving.set_grad(There::zeros({2}));
  frozen.set_grad(There::ones({2}));
  frozen.set_requires_grad(false);
  sgd.step();
  CHECK(moving.value().to_vector<float>() == std::vector<float>{.5f, .5f});
  CHECK(idle.value().to_vector<float>() == std::vector<float>{1, 1});
  CHECK(frozen.value().to_vector<float>() == std::vector<float>{1, 1});
  CHECK(sgd.state().size() == 2);
  sgd.zero_grad();
  CHECK_FALSE(moving.grad().defined());
}

TEST_CASE("optim.optimizer: a gradient that is not finite refuses the whole step and is named") {
  Variable a = leaf({2}), b = leaf({2, 3});
  SGD sgd(ParameterList({{"fc.bias", a}, {"fc.weight", b}}), {.lr = 1, .momentum = .5});
  a.set_grad(There::ones({2}));
  b.set_grad(There::ones({2, 3}));
  sgd.step();
  const Tensor a_before = a.value().clone(), momentum = sgd.state()[1].second.clone();

  Tensor bad = There::ones({2, 3});
  bad[1][2].fill(std::nan(""));
  b.set_grad(test::there(bad));
  CHECK_THROWS_WITH_AS(sgd.step(),
                       "[step] gradients must be finite, got nan at [1, 2] of parameter fc.weight "
                       "[2, 3] (1 such elements); nothing was changed, call zero_grad() to go on "
                       "without this step",
                       StateError);
  bad[0][1].fill(-HUGE_VAL);
  CHECK_THROWS_WITH_AS(sgd.step(),
                       "[step] gradients must be finite, got -inf at [0, 1] of parameter fc.weight "
                       "[2, 3] (2 such elements); nothing was changed, call zero_grad() to go on "
                       "without this step",
                       StateError);
  CHECK(equal_bits(a.value(), a_before));
  CHECK(equal_bits(sgd.state()[1].second, momentum));
  CHECK(b.grad().defined());
}

TEST_CASE("optim.optimizer: unnamed parameters are named by position") {
  Variable a = leaf({}), b = leaf({});
  SGD sgd({a, b}, {});
  b.set_grad(There::full({}, HUGE_VAL));
  CHECK_THROWS_WITH_AS(sgd.step(),
                       "[step] gradients must be finite, got inf at [] of parameter 1 [] (1 such "
                       "elements); nothing was changed, call zero_grad() to go on without this "
                       "step",
                       StateError);
}

TEST_CASE("optim.optimizer: no parameters, other than leaves, twice or not dense is refused") {
  const Variable w = leaf({2, 3});
  CHECK_THROWS_WITH_AS(SGD(ParameterList(), {}),
                       "[SGD] at least one parameter is needed, got none; pass model.parameters()",
                       ValueError);
  CHECK_THROWS_AS(SGD(std::vector<SGD::Group>{}), ValueError);
  CHECK_THROWS_WITH_AS(SGD({w, w + w}, {}),
                       "[SGD] parameters must be leaves, got parameter 1, the result of add; "
                       "use Variable::leaf(value)",
                       ValueError);
  CHECK_THROWS_WITH_AS(SGD({Variable(There::ones({1}))}, {}),
                       "[SGD] parameters must be leaves, got parameter 0 without a gradient; use "
                       "Variable::leaf(value)",
                       ValueError);
  CHECK_THROWS_AS(SGD({Variable()}, {}), ValueError);
  CHECK_THROWS_WITH_AS(SGD(ParameterList({{"a", w}, {"b", leaf({1})}, {"c", w}}), {}),
                       "[SGD] every parameter must be given once, got parameter a again as c",
                       ValueError);
  CHECK_THROWS_AS(SGD({{{w}, {}}, {{w}, {}}}), ValueError);
  CHECK_THROWS_WITH_AS(SGD(ParameterList({{"a", w}, {"a", leaf({1})}}), {}),
                       "[SGD] names of parameters must differ, got \"a\" twice; put the name of "
                       "the model before them",
                       ValueError);
  CHECK_THROWS_WITH_AS(SGD({Variable::leaf(There::ones({2, 3}).transpose(0, 1))}, {}),
                       "[SGD] parameters must be dense and row-major, got parameter 0 [3, 2] with "
                       "strides [1, 3]; use contiguous()",
                       ValueError);
}

TEST_CASE("optim.optimizer: learning rates are read and set per group") {
  SGD sgd({{{leaf({1})}, {.lr = .5}}, {{leaf({1})}, {.lr = .25}}});
  CHECK(sgd.lr() == .5);
  CHECK(sgd.lr(1) == .25);
  sgd.set_lr(2, 1);
  CHECK(sgd.lr(1) == 2);
  CHECK_THROWS_WITH_AS(sgd.set_lr(std::nan("")),
                       "[set_lr] lr must be >= 0 and finite in float32, got nan",
                       ValueError);
  CHECK_THROWS_WITH_AS(sgd.set_lr(1, 2), "[set_lr] group must lie in [0, 2), got 2", IndexError);
  CHECK_THROWS_WITH_AS(sgd.lr(-1), "[lr] group must lie in [0, 2), got -1", IndexError);
  CHECK(sgd.lr() == .5);
}

TEST_CASE("optim.optimizer: momentum is read and set per group") {
  Variable p = leaf({1});
  SGD sgd({{{p}, {.lr = 1}}, {{leaf({1})}, {.momentum = .5}}});
  CHECK(sgd.momentum(1) == .5);
  sgd.set_momentum(.25);
  for (int step = 0; step < 2; ++step) {
    p.set_grad(There::ones({1}));
    sgd.step();
  }
  CHECK(p.item<float>() == 1 - 1 - 1.25f);
  CHECK_THROWS_WITH_AS(
      sgd.set_momentum(1), "[set_momentum] momentum must lie in [0, 1), got 1", ValueError);
  CHECK_THROWS_AS(sgd.set_momentum(std::nan("")), ValueError);
  CHECK_THROWS_AS(sgd.set_momentum(.5, 2), IndexError);
  CHECK(sgd.momentum() == .25);
}

TEST_CASE("optim.optimizer: a loaded state continues in the same bits, matched by name") {
  Variable a = leaf({2}, 1), b = leaf({3}, 2);
  const auto step = [](Optimizer& optimizer, double gradient) {
    for (auto [name, p] : optimizer.parameters()) p.set_grad(There::full(p.shape(), gradient));
    optimizer.step();
  };
  SGD first(ParameterList({{"a", a}, {"b", b}}), {.lr = .1, .momentum = .9});
  step(first, .3);
  first.set_lr(.05);

  Variable c = Variable::leaf(a.value().clone()), d = Variable::leaf(b.value().clone());
  SGD second(ParameterList({{"b", d}, {"a", c}}), {.lr = 1, .momentum = .9});
  second.load_state(first.state());
  CHECK(second.lr() == .05);
  step(first, .7);
  step(second, .7);
  CHECK(equal_bits(a.value(), c.value()));
  CHECK(equal_bits(b.value(), d.value()));
}

TEST_CASE("optim.optimizer: a parameter frozen between save and load keeps its momentum") {
  Variable a = leaf({1}), b = leaf({1});
  SGD sgd(ParameterList({{"a", a}, {"b", b}}), {.lr = .5, .momentum = .5});
  a.set_grad(There::ones({1}));
  b.set_grad(There::ones({1}));
  sgd.step();
  const OptimizerState saved = {{"lr", sgd.state()[0].second},
                                {"momentum.a", There::full({1}, 2)},
                                {"momentum.b", There::full({1}, 4)}};
  b.set_requires_grad(false);
  sgd.load_state(saved);
  sgd.step();
  CHECK(a.item<float>() == .5f - .5f * 2);
  CHECK(b.item<float>() == .5f);
  CHECK(sgd.state()[2].second.item<float>() == 4);
}

TEST_CASE("optim.optimizer: a state lists the rates, then the slots of stepped parameters") {
  Variable a = leaf({2}), b = leaf({3});
  SGD sgd(ParameterList({{"a", a}, {"b", b}}), {.lr = .5, .momentum = .9});
  b.set_grad(There::full({3}, 4));
  sgd.step();
  const OptimizerState state = sgd.state();
  REQUIRE(state.size() == 2);
  CHECK(state[0].first == "lr");
  CHECK(state[0].second.to_vector<double>() == std::vector<double>{.5});
  CHECK(state[1].first == "momentum.b");
  CHECK(state[1].second.to_vector<float>() == std::vector<float>{4, 4, 4});
}

TEST_CASE("optim.optimizer: a state that does not fit is refused whole") {
  Variable a = leaf({2});
  SGD sgd(ParameterList({{"a", a}}), {.lr = .5, .momentum = .9});
  SGD plain(ParameterList({{"a", a}}), {.lr = .5});
  a.set_grad(There::ones({2}));
  sgd.step();
  const Tensor momentum = sgd.state()[1].second;
  const auto lr = [](double value) { return Tensor::of<double>({value}); };
  CHECK_THROWS_WITH_AS(
      sgd.load_state(
          {{"lr", lr(1)}, {"momentum.a", There::zeros({3})}, {"exp_avg.a", There::zeros({2})}}),
      "[load_state] the state must fit the optimizer; momentum.a must be [2] "
      "float32, got [3] float32; exp_avg.a is not known; nothing was loaded",
      ValueError);
  CHECK_THROWS_WITH_AS(
      sgd.load_state({}),
      "[load_state] the state must fit the optimizer; lr is missing; nothing was loaded",
      ValueError);
  CHECK_THROWS_AS(sgd.load_state({{"lr", lr(std::nan(""))}}), ValueError);
  CHECK_THROWS_AS(sgd.load_state({{"lr", lr(1)}, {"momentum.a", Tensor()}}), ValueError);
  CHECK_THROWS_AS(plain.load_state(sgd.state()), ValueError);
  CHECK(sgd.lr() == .5);
  CHECK(sgd.state()[1].second.shares_storage(momentum));
  sgd.load_state({{"lr", lr(1)}});
  CHECK(sgd.state().size() == 1);
}

TEST_CASE("optim.optimizer: a graph that still needs a parameter notices the step") {
  Variable w = leaf({2}), x = leaf({2});
  const Variable y = w * x;
  w.set_grad(There::ones({2}));
  SGD({w}, {.lr = 1}).step();
  CHECK_THROWS_AS(y.backward(There::ones({2})), StateError);
}

}  // namespace
}  // namespace accrue::optim
