// Chained schedules: torch's doubles with all their rounding, resuming, refused arguments.
#include "accrue/optim/chained_schedules.h"

#include "accrue/tests/support/rates.h"

namespace accrue::optim {
namespace {

using tests::rates_of;

TEST_CASE("optim.chained_schedules: steps have torch's doubles") {
  const double a = 0.010000000000000002, b = 0.0010000000000000002, c = 0.00010000000000000003;
  CHECK(rates_of(11, [](SGD& sgd) { return StepLR(sgd, 3); }) ==
        std::vector<double>{.1, .1, .1, a, a, a, b, b, b, c, c});
  CHECK(rates_of(8, [](SGD& sgd) {
          return MultiStepLR(sgd, {5, 2, 2});
        }) == std::vector<double>{.1, .1, b, b, b, c, c, c});
}

TEST_CASE("optim.chained_schedules: exponential decay has torch's doubles") {
  CHECK(rates_of(11, [](SGD& sgd) { return ExponentialLR(sgd, .9); }) ==
        std::vector<double>{0.1,
                            0.09000000000000001,
                            0.08100000000000002,
                            0.07290000000000002,
                            0.06561000000000002,
                            0.05904900000000002,
                            0.05314410000000002,
                            0.04782969000000002,
                            0.043046721000000024,
                            0.03874204890000002,
                            0.03486784401000002});
}

TEST_CASE("optim.chained_schedules: cosine annealing has torch's doubles over two periods") {
  CHECK(rates_of(23, [](SGD& sgd) { return CosineAnnealingLR(sgd, 5, .01); }) ==
        std::vector<double>{
            0.1,
            0.09140576474687263,
            0.06890576474687263,
            0.04109423525312736,
            0.018594235253127367,
            0.01,
            0.018594235253127367,
            0.04109423525312739,
            0.06890576474687267,
            0.09140576474687269,
            0.10000000000000006,
            0.09140576474687272,
            0.06890576474687268,
            0.0410942352531274,
            0.01859423525312738,
            0.01,
            0.018594235253127367,
            0.04109423525312739,
            0.0689057647468727,
            0.09140576474687272,
            0.10000000000000012,
            0.09140576474687274,
            0.06890576474687281,
        });
  CHECK(rates_of(5, [](SGD& sgd) { return CosineAnnealingLR(sgd, 1); }) ==
        std::vector<double>{.1, 0, .1, 0, .1});
}

TEST_CASE("optim.chained_schedules: a rate set from outside is carried on") {
  SGD sgd = tests::sgd_with(.5);
  ExponentialLR schedule(sgd, .5);
  sgd.set_lr(8);
  schedule.step();
  CHECK(sgd.lr() == 4);
}

TEST_CASE("optim.chained_schedules: a resumed schedule continues in the same bits") {
  tests::check_resumes([](SGD& sgd) { return StepLR(sgd, 3); });
  tests::check_resumes([](SGD& sgd) { return MultiStepLR(sgd, {2, 5}); });
  tests::check_resumes([](SGD& sgd) { return ExponentialLR(sgd, .9); });
  tests::check_resumes([](SGD& sgd) { return CosineAnnealingLR(sgd, 3, .01); });
}

TEST_CASE("optim.chained_schedules: wrong arguments are refused") {
  SGD sgd = tests::sgd_with(.5);
  CHECK_THROWS_WITH_AS(StepLR(sgd, 0), "[StepLR] size must be >= 1, got 0", ValueError);
  CHECK_THROWS_WITH_AS(ExponentialLR(sgd, -1),
                       "[ExponentialLR] gamma must be >= 0 and finite in float32, got -1",
                       ValueError);
  CHECK_THROWS_WITH_AS(
      CosineAnnealingLR(sgd, 0), "[CosineAnnealingLR] half_period must be >= 1, got 0", ValueError);
  CHECK_THROWS_AS(StepLR(sgd, 1, std::nan("")), ValueError);
  CHECK_THROWS_AS(MultiStepLR(sgd, {1}, -1), ValueError);
  CHECK_THROWS_AS(CosineAnnealingLR(sgd, 1, -1), ValueError);
  CHECK(sgd.lr() == .5);
}

}  // namespace
}  // namespace accrue::optim
