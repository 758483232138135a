// RMSprop: torch's bits, saved state, a variance that rounds below 0, refused options.
#include "accrue/optim/rmsprop.h"

#include "accrue/tests/support/device.h"
#include "accrue/tests/support/optimizer_golden.h"

#include <cmath>

namespace accrue::optim {
namespace {

using test::There;

TEST_CASE("optim.rmsprop: 150 runs of seven steps, some without gradient, match torch 1.13.1") {
  CHECK(tests::check_golden_runs("rmsprop", [](const Variable& p, tests::GoldenOptions& given) {
          RmspropOptions o;
          o.lr = given.number();
          o.alpha = given.number();
          o.eps = given.number();
          o.weight_decay = given.number();
          o.momentum = given.number();
          o.centered = given.flag();
          o.maximize = given.flag();
          return RMSprop({p}, o);
        }) == 150);
}

TEST_CASE("optim.rmsprop: a saved run continues in the same bits, averages by name") {
  Variable p = Variable::leaf(There::ones({2}));
  const RmspropOptions options = {.lr = .1, .momentum = .9, .centered = true};
  RMSprop first(ParameterList({{"p", p}}), options);
  const auto step = [](Optimizer& optimizer, Variable parameter, double gradient) {
    parameter.set_grad(There::full({2}, gradient));
    optimizer.step();
  };
  step(first, p, .5);
  const OptimizerState state = first.state();
  REQUIRE(state.size() == 4);
  CHECK(state[1].first == "square_avg.p");
  CHECK(state[2].first == "grad_avg.p");
  CHECK(state[3].first == "momentum_buffer.p");

  const Variable q = Variable::leaf(p.value().clone());
  RMSprop second(ParameterList({{"p", q}}), options);
  second.load_state(state);
  for (const double gradient : {.3, -.7}) {
    step(first, p, gradient);
    step(second, q, gradient);
  }
  CHECK(equal_bits(p.value(), q.value()));
}

TEST_CASE("optim.rmsprop: slots are kept where a group uses them") {
  const Variable a = Variable::leaf(There::ones({1})), b = Variable::leaf(There::ones({1}));
  RMSprop rmsprop({{{a}, {.centered = true}}, {{b}, {.momentum = .5}}});
  for (Variable p : {a, b}) p.set_grad(There::ones({1}));
  rmsprop.step();
  std::string names;
  for (const auto& [name, value] : rmsprop.state()) names += name + ' ';
  CHECK(names == "lr square_avg.0 square_avg.1 grad_avg.0 momentum_buffer.1 ");
}

TEST_CASE("optim.rmsprop: a constant gradient keeps the centered parameter a number") {
  Variable p = Variable::leaf(There::zeros({4}));
  RMSprop rmsprop({p}, {.lr = 1e-6, .alpha = .5, .centered = true});
  for (int step = 0; step < 200; ++step) {
    p.set_grad(There::of<float>({.1f, .3f, .7f, -1.1f}));
    rmsprop.step();
  }
  for (const float value : p.value().to_vector<float>()) CHECK(std::isfinite(value));
}

TEST_CASE("optim.rmsprop: options outside their domain are refused") {
  const Variable p = Variable::leaf(There::zeros({1}));
  const auto make = [&](const RmspropOptions& options) { RMSprop({p}, options); };
  CHECK_THROWS_WITH_AS(make({.alpha = 1}), "[RMSprop] alpha must lie in [0, 1), got 1", ValueError);
  int num_refused = 0;
  for (const double bad : {-.1, std::nan(""), HUGE_VAL}) {
    for (const RmspropOptions& options : {RmspropOptions{.lr = bad},
                                          RmspropOptions{.alpha = bad},
                                          RmspropOptions{.eps = bad},
                                          RmspropOptions{.weight_decay = bad},
                                          RmspropOptions{.momentum = bad}}) {
      CHECK_THROWS_AS(make(options), ValueError);
      ++num_refused;
    }
  }
  MESSAGE("refused ", num_refused, " sets of options");
}

}  // namespace
}  // namespace accrue::optim
