// Adagrad: torch's bits, saved state, refused options.
#include "accrue/optim/adagrad.h"

#include "accrue/tests/support/device.h"
#include "accrue/tests/support/optimizer_golden.h"

#include <cmath>

namespace accrue::optim {
namespace {

using test::There;

TEST_CASE("optim.adagrad: 150 runs of seven steps, some without gradient, match torch 1.13.1") {
  CHECK(tests::check_golden_runs("adagrad", [](const Variable& p, tests::GoldenOptions& given) {
          AdagradOptions o;
          o.lr = given.number();
          o.lr_decay = given.number();
          o.weight_decay = given.number();
          o.initial_accumulator_value = given.number();
          o.eps = given.number();
          o.maximize = given.flag();
          return Adagrad({p}, o);
        }) == 150);
}

TEST_CASE("optim.adagrad: a saved run continues in the same bits, sums and steps by name") {
  Variable p = Variable::leaf(There::ones({2}));
  const AdagradOptions options = {.lr = .1, .lr_decay = .5, .initial_accumulator_value = .25};
  Adagrad first(ParameterList({{"p", p}}), options);
  const auto step = [](Optimizer& optimizer, Variable parameter, double gradient) {
    parameter.set_grad(There::full({2}, gradient));
    optimizer.step();
  };
  step(first, p, .5);
  const OptimizerState state = first.state();
  REQUIRE(state.size() == 3);
  CHECK(state[1].first == "step.p");
  CHECK(state[1].second.item<std::int64_t>() == 1);
  CHECK(state[2].first == "sum.p");
  CHECK(state[2].second.to_vector<float>() == std::vector<float>{.5f, .5f});

  const Variable q = Variable::leaf(p.value().clone());
  Adagrad second(ParameterList({{"p", q}}), options);
  second.load_state(state);
  for (const double gradient : {.3, -.7}) {
    step(first, p, gradient);
    step(second, q, gradient);
  }
  CHECK(equal_bits(p.value(), q.value()));
}

TEST_CASE("optim.adagrad: options outside their domain are refused") {
  const Variable p = Variable::leaf(There::zeros({1}));
  const auto make = [&](const AdagradOptions& options) { Adagrad({p}, options); };
  CHECK_THROWS_WITH_AS(
      make({.eps = -1}), "[Adagrad] eps must be >= 0 and finite in float32, got -1", ValueError);
  int num_refused = 0;
  for (const double bad : {-.1, std::nan(""), HUGE_VAL}) {
    for (const AdagradOptions& options : {AdagradOptions{.lr = bad},
                                          AdagradOptions{.lr_decay = bad},
                                          AdagradOptions{.weight_decay = bad},
                                          AdagradOptions{.initial_accumulator_value = bad},
                                          AdagradOptions{.eps = bad}}) {
      CHECK_THROWS_AS(make(options), ValueError);
      ++num_refused;
    }
  }
  MESSAGE("refused ", num_refused, " sets of options");
  Adagrad adagrad({p}, {});
  CHECK_FALSE(adagrad.has_momentum());
  CHECK_THROWS_WITH_AS(adagrad.set_momentum(.5),
                       "[set_momentum] the optimizer must have a momentum, got Adagrad",
                       StateError);
}

}  // namespace
}  // namespace accrue::optim
