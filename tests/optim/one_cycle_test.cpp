// OneCycleLR: torch's doubles for rates and momenta, resuming, refused arguments.
#include "accrue/optim/one_cycle.h"

#include "accrue/optim/adagrad.h"
#include "accrue/optim/adam.h"
#include "accrue/tests/support/rates.h"

namespace accrue::optim {
namespace {

void check_cycle(OneCycleOptions options,
                 const std::vector<double>& rates,
                 const std::vector<double>& momenta) {
  SGD sgd = tests::sgd_with(.7);
  options.max_lrs = {.1};
  options.total = 10;
  OneCycleLR schedule(sgd, options);
  for (std::size_t t = 0; t < rates.size(); ++t) {
    if (t > 0) schedule.step();
    CAPTURE(t);
    CHECK(sgd.lr() == rates[t]);
    CHECK(sgd.momentum() == momenta[t]);
  }
}

TEST_CASE("optim.one_cycle: rates and momenta have torch's doubles") {
  check_cycle({},
              {0.0040000000000000036,
               0.052000000000000005,
               0.1,
               0.09504846320134738,
               0.0811745653949763,
               0.06112620219362893,
               0.03887419780637107,
               0.0188258346050237,
               0.004951936798652629,
               4e-07,
               0.004951936798652624},
              {0.95,
               0.8999999999999999,
               0.85,
               0.854951556604879,
               0.8688255099070633,
               0.8888739533021842,
               0.9111260466978157,
               0.9311744900929366,
               0.945048443395121,
               0.95,
               0.945048443395121});
  check_cycle({.anneal = Anneal::linear},
              {0.004,
               0.052000000000000005,
               0.1,
               0.08571434285714286,
               0.07142868571428572,
               0.05714302857142858,
               0.042857371428571434,
               0.028571714285714284,
               0.014286057142857148,
               3.999999999976245e-07},
              {0.95,
               0.8999999999999999,
               0.85,
               0.8642857142857142,
               0.8785714285714286,
               0.8928571428571428,
               0.9071428571428571,
               0.9214285714285714,
               0.9357142857142857,
               0.95});
}

TEST_CASE("optim.one_cycle: three phases and a rise of no length have torch's doubles") {
  check_cycle(
      {.three_phase = true},
      {0.0040000000000000036,
       0.052000000000000005,
       0.1,
       0.052000000000000005,
       0.004,
       0.0036180721853510196,
       0.0026181721853510195,
       0.0013822278146489802,
       0.0003823278146489803,
       4e-07},
      {0.95, 0.8999999999999999, 0.85, 0.8999999999999999, 0.95, 0.95, 0.95, 0.95, 0.95, 0.95});
  check_cycle({.rise = 0},
              {0.09755283560345443, 0.0904508879153485, 0.0793893450575732},
              {0.8524471741852423, 0.8595491502812526, 0.8706107373853763});
  check_cycle({.rise = .1}, {.1}, {.85});
}

TEST_CASE("optim.one_cycle: groups have rates of their own, and Adam cycles beta1") {
  const auto leaf = [] { return Variable::leaf(Tensor::zeros({1})); };
  Adam adam({{{leaf()}, {.lr = 1}}, {{leaf()}, {.lr = .5}}});
  OneCycleLR schedule(adam, {.max_lrs = {1, 2}, .total = 10, .rise = .2, .anneal = Anneal::linear});
  CHECK(adam.momentum(1) == .95);
  schedule.step();
  CHECK(schedule.last_lrs() == std::vector<double>{1, 2});
  CHECK(adam.momentum(0) == .85);
  CHECK(adam.momentum(1) == .85);
}

TEST_CASE("optim.one_cycle: a resumed cycle continues in the same bits") {
  tests::check_resumes([](SGD& sgd) { return OneCycleLR(sgd, {.max_lrs = {.1}, .total = 12}); });
}

TEST_CASE("optim.one_cycle: wrong arguments and steps beyond the last are refused") {
  SGD sgd = tests::sgd_with(.5);
  const auto make = [&](const OneCycleOptions& options) { OneCycleLR(sgd, options); };
  CHECK_THROWS_WITH_AS(
      make({.max_lrs = {1}}), "[OneCycleLR] total must be >= 1, got 0", ValueError);
  CHECK_THROWS_WITH_AS(make({.max_lrs = {1, 2}, .total = 5}),
                       "[OneCycleLR] one max_lr or one per group is needed, got 2 for 1 groups",
                       ValueError);
  CHECK_THROWS_WITH_AS(make({.max_lrs = {1}, .total = 5, .rise = .6, .three_phase = true}),
                       "[OneCycleLR] rise must lie in [0, 0.5], got 0.6",
                       ValueError);
  CHECK_THROWS_WITH_AS(make({.max_lrs = {1}, .total = 5, .max_momentum = 1}),
                       "[OneCycleLR] max_momentum must lie in [0, 1), got 1",
                       ValueError);
  CHECK_THROWS_AS(make({.max_lrs = {1}, .total = 5, .rise = 1.1}), ValueError);
  CHECK_THROWS_AS(make({.max_lrs = {1}, .total = 5, .div = 0}), ValueError);
  CHECK_THROWS_AS(make({.max_lrs = {1}, .total = 5, .final_div = -1}), ValueError);
  CHECK_THROWS_AS(make({.max_lrs = {-1}, .total = 5}), ValueError);
  CHECK(sgd.lr() == .5);
  CHECK(sgd.momentum() == .9);

  Adagrad adagrad({Variable::leaf(Tensor::zeros({1}))}, {});
  CHECK_THROWS_WITH_AS(
      OneCycleLR(adagrad, {.max_lrs = {1}, .total = 5}),
      "[OneCycleLR] the optimizer must have a momentum, got none; set cycle_momentum to false",
      StateError);
  OneCycleLR schedule(adagrad, {.max_lrs = {1}, .total = 1, .cycle_momentum = false});
  schedule.step();
  CHECK_THROWS_WITH_AS(
      schedule.step(), "[OneCycleLR] at most 1 steps are scheduled, got step 2", ValueError);
  CHECK(schedule.last_step() == 1);
}

}  // namespace
}  // namespace accrue::optim
