// Schedules with warm-up: the values of transformers, resuming, refused arguments.
#include "accrue/optim/warmup_schedules.h"

#include "accrue/tests/support/rates.h"

namespace accrue::optim {
namespace {

using tests::check_ten_digits;
using tests::rates_of;

TEST_CASE("optim.warmup_schedules: linear decay has the doubles of torch's LambdaLR") {
  const std::vector<double> expected = {0.0,
                                        0.03333333333333333,
                                        0.06666666666666667,
                                        0.1,
                                        0.08571428571428572,
                                        0.07142857142857144,
                                        0.05714285714285714,
                                        0.04285714285714286,
                                        0.02857142857142857,
                                        0.014285714285714285,
                                        0.0,
                                        0.0};
  CHECK(rates_of(12, [](SGD& sgd) { return linear_schedule_with_warmup(sgd, 3, 10); }) == expected);
}

TEST_CASE("optim.warmup_schedules: a constant rate, with and without warm-up") {
  std::vector<double> expected(12, 0.1);
  CHECK(rates_of(12, [](SGD& sgd) { return constant_schedule(sgd); }) == expected);
  CHECK(rates_of(12, [](SGD& sgd) { return constant_schedule_with_warmup(sgd, 0); }) == expected);
  expected[0] = 0;
  expected[1] = 0.03333333333333333;
  expected[2] = 0.06666666666666667;
  CHECK(rates_of(12, [](SGD& sgd) { return constant_schedule_with_warmup(sgd, 3); }) == expected);
}

TEST_CASE("optim.warmup_schedules: warm-up beyond the total and a total of 0 decay to 0") {
  const std::vector<double> values =
      rates_of(6, [](SGD& sgd) { return linear_schedule_with_warmup(sgd, 4, 2); });
  CHECK(values[3] == 0.1 * 0.75);
  CHECK(values[4] == 0);
  CHECK(rates_of(1, [](SGD& sgd) { return linear_schedule_with_warmup(sgd, 0, 0); })[0] == 0);
}

TEST_CASE("optim.warmup_schedules: cosine, restarts, polynomial and inverse root") {
  check_ten_digits({0,
                    .03333333333,
                    .06666666667,
                    .1,
                    .0950484434,
                    .08117449009,
                    .0611260467,
                    .0388739533,
                    .01882550991,
                    .004951556605,
                    0},
                   [](SGD& sgd) { return cosine_schedule_with_warmup(sgd, 3, 10); });
  check_ten_digits(
      {0,
       .03333333333,
       .06666666667,
       .1,
       .08117449009,
       .0388739533,
       .004951556605,
       .0950484434,
       .0611260467,
       .01882550991,
       0,
       0},
      [](SGD& sgd) { return cosine_with_restarts_schedule_with_warmup(sgd, 3, 10, 2); });
  check_ten_digits({0,
                    .03333333333,
                    .06666666667,
                    .1,
                    .07346941429,
                    .05102045714,
                    .03265312857,
                    .01836742857,
                    .008163357143,
                    .002040914286,
                    1e-07,
                    1e-07},
                   [](SGD& sgd) { return polynomial_schedule_with_warmup(sgd, 3, 10, 1e-7, 2); });
  check_ten_digits({0,
                    .03333333333,
                    .06666666667,
                    .1,
                    .08660254038,
                    .07745966692,
                    .07071067812,
                    .06546536707,
                    .06123724357,
                    .05773502692,
                    .05477225575},
                   [](SGD& sgd) { return inverse_sqrt_schedule(sgd, 3); });
  check_ten_digits({.1, .1 / std::sqrt(1.0001)},
                   [](SGD& sgd) { return inverse_sqrt_schedule(sgd, 0); });
}

TEST_CASE("optim.warmup_schedules: cosines that end at a smallest rate") {
  check_ten_digits(
      {0,
       .03333333333,
       .06666666667,
       .1,
       .09554359906,
       .08305704108,
       .06501344203,
       .04498655797,
       .02694295892,
       .01445640094,
       .01},
      [](SGD& sgd) { return cosine_with_min_lr_schedule_with_warmup(sgd, 3, 10, .1); });
  check_ten_digits({.03333333333,
                    .06666666667,
                    .1,
                    .09554359906,
                    .08305704108,
                    .06501344203,
                    .04498655797,
                    .02694295892,
                    .01445640094,
                    .01,
                    .01445640094},
                   [](SGD& sgd) { return cosine_warmup_with_min_lr_schedule(sgd, 3, 10, .1); });
  check_ten_digits({.05, .075, .1},
                   [](SGD& sgd) { return cosine_warmup_with_min_lr_schedule(sgd, 3, 10, .1, .5); });
}

TEST_CASE("optim.warmup_schedules: warm-up, plateau and decay") {
  check_ten_digits({.01, .04, .07, .1, .1, .1, .1, .1, .0775, .0325, .01, .01}, [](SGD& sgd) {
    return warmup_stable_decay_schedule(sgd,
                                        {.warmup = 3, .stable = 4, .decay = 3, .min_rate = .1});
  });
  check_ten_digits(
      {0, .01835034191, .04226497308, .1, .1, .1, .1, .1, .04226497308, .01835034191, 0},
      [](SGD& sgd) {
        return warmup_stable_decay_schedule(sgd,
                                            {.warmup = 3,
                                             .stable = 4,
                                             .decay = 3,
                                             .rise = Ramp::one_minus_sqrt,
                                             .fall = Ramp::one_minus_sqrt});
      });
  check_ten_digits({0, .05, .1, .05, 0}, [](SGD& sgd) {
    return warmup_stable_decay_schedule(
        sgd, {.warmup = 2, .decay = 2, .rise = Ramp::cosine, .fall = Ramp::linear});
  });
}

TEST_CASE("optim.warmup_schedules: each group falls from its base rate to the same end") {
  const auto leaf = [] { return Variable::leaf(Tensor::zeros({1})); };
  SGD sgd({{{leaf()}, {.lr = 1}}, {{leaf()}, {.lr = .5}}});
  LambdaLR schedule = polynomial_schedule_with_warmup(sgd, 0, 2, .25);
  schedule.step();
  CHECK(schedule.last_lrs() == std::vector<double>{.625, .375});
  schedule.step();
  CHECK(schedule.last_lrs() == std::vector<double>{.25, .25});
}

TEST_CASE("optim.warmup_schedules: a resumed schedule continues in the same bits") {
  tests::check_resumes([](SGD& sgd) { return cosine_schedule_with_warmup(sgd, 3, 8); });
  tests::check_resumes([](SGD& sgd) {
    return warmup_stable_decay_schedule(sgd, {.warmup = 2, .stable = 3, .decay = 3});
  });
}

TEST_CASE("optim.warmup_schedules: wrong arguments are refused") {
  SGD sgd = tests::sgd_with(.5);
  const double nan = std::nan("");
  CHECK_THROWS_WITH_AS(linear_schedule_with_warmup(sgd, -1, 10),
                       "[linear_schedule_with_warmup] warmup must be >= 0, got -1",
                       ValueError);
  CHECK_THROWS_WITH_AS(linear_schedule_with_warmup(sgd, 0, -1),
                       "[linear_schedule_with_warmup] total must be >= 0, got -1",
                       ValueError);
  CHECK_THROWS_WITH_AS(constant_schedule_with_warmup(sgd, -1),
                       "[constant_schedule_with_warmup] warmup must be >= 0, got -1",
                       ValueError);
  CHECK_THROWS_WITH_AS(cosine_schedule_with_warmup(sgd, 0, 1, nan),
                       "[cosine_schedule_with_warmup] cycles must be finite, got nan",
                       ValueError);
  CHECK_THROWS_WITH_AS(
      cosine_with_restarts_schedule_with_warmup(sgd, 0, 1, -1),
      "[cosine_with_restarts_schedule_with_warmup] cycles must be >= 0 and finite, got -1",
      ValueError);
  CHECK_THROWS_WITH_AS(polynomial_schedule_with_warmup(sgd, 0, 1, .5),
                       "[polynomial_schedule_with_warmup] lr must be above lr_end 0.5, got 0.5",
                       ValueError);
  CHECK_THROWS_AS(inverse_sqrt_schedule(sgd, 1, -1), ValueError);
  CHECK_THROWS_AS(cosine_with_min_lr_schedule_with_warmup(sgd, 0, 1, -1), ValueError);
  CHECK_THROWS_AS(cosine_warmup_with_min_lr_schedule(sgd, 0, 1, nan), ValueError);
  CHECK_THROWS_AS(warmup_stable_decay_schedule(sgd, {.decay = -1}), ValueError);
  CHECK(sgd.lr() == .5);
}

}  // namespace
}  // namespace accrue::optim
