// ReduceLROnPlateau: torch's rates, both directions and thresholds, resuming, refused arguments.
#include "accrue/optim/plateau.h"

#include "accrue/tests/support/rates.h"

namespace accrue::optim {
namespace {

std::vector<double> rates(const PlateauOptions& options, const std::vector<double>& metrics) {
  SGD sgd = tests::sgd_with(.1);
  ReduceLROnPlateau schedule(sgd, options);
  std::vector<double> out;
  for (const double metric : metrics) {
    schedule.step(metric);
    CHECK(schedule.state().last_lrs == std::vector<double>{sgd.lr()});
    out.push_back(sgd.lr());
  }
  return out;
}

TEST_CASE("optim.plateau: rates fall as torch's, with patience and cooldown") {
  CHECK(rates({.factor = .5, .patience = 1, .threshold = .01, .cooldown = 1},
              {1, .9, .895, .893, .893, .893, .893, .893, .893, .8, .8, .8, .8}) ==
        std::vector<double>{.1, .1, .1, .05, .05, .05, .025, .025, .025, .025, .025, .0125, .0125});
}

TEST_CASE("optim.plateau: gains are parts or differences, of falling or rising metrics") {
  PlateauOptions options = {.factor = .5, .patience = 0, .threshold = .5};
  CHECK(rates(options, {4, 1.9, 1}) == std::vector<double>{.1, .1, .05});
  options.absolute = true;
  CHECK(rates(options, {4, 3.4, 3}) == std::vector<double>{.1, .1, .05});
  options.maximize = true;
  CHECK(rates(options, {4, 4.6, 5}) == std::vector<double>{.1, .1, .05});
  options.absolute = false;
  CHECK(rates(options, {4, 6.1, 9}) == std::vector<double>{.1, .1, .05});
}

TEST_CASE("optim.plateau: a metric of NaN is no gain") {
  CHECK(rates({.factor = .5, .patience = 1}, {1, std::nan(""), std::nan("")}) ==
        std::vector<double>{.1, .1, .05});
}

TEST_CASE("optim.plateau: rates stop at their smallest, and small reductions are not made") {
  CHECK(rates({.factor = .5, .patience = 0, .min_lrs = {.03}}, {1, 1, 1, 1}) ==
        std::vector<double>{.1, .05, .03, .03});
  CHECK(rates({.factor = .5, .patience = 0, .eps = .04}, {1, 1, 1}) ==
        std::vector<double>{.1, .05, .05});
}

TEST_CASE("optim.plateau: a resumed schedule continues in the same bits") {
  SGD sgd = tests::sgd_with(.1), fresh = tests::sgd_with(.7);
  const PlateauOptions options = {.factor = .5, .patience = 1, .cooldown = 2};
  ReduceLROnPlateau schedule(sgd, options), resumed(fresh, options);
  for (const double metric : {1.0, 1.0, 1.0}) schedule.step(metric);
  resumed.load_state(schedule.state());
  for (const double metric : {1.0, 1.0, .5, .5, .5, .5, .5, .5}) {
    schedule.step(metric);
    resumed.step(metric);
    CHECK(fresh.lr() == sgd.lr());
  }
  CHECK(sgd.lr() == .025);
}

TEST_CASE("optim.plateau: wrong arguments and states are refused") {
  SGD sgd = tests::sgd_with(.5);
  CHECK_THROWS_WITH_AS(ReduceLROnPlateau(sgd, {.factor = 1}),
                       "[ReduceLROnPlateau] factor must lie in [0, 1), got 1",
                       ValueError);
  CHECK_THROWS_WITH_AS(ReduceLROnPlateau(sgd, {.patience = -1}),
                       "[ReduceLROnPlateau] patience must be >= 0, got -1",
                       ValueError);
  CHECK_THROWS_WITH_AS(
      ReduceLROnPlateau(sgd, {.min_lrs = {}}),
      "[ReduceLROnPlateau] one min_lr or one per group is needed, got 0 for 1 groups",
      ValueError);
  CHECK_THROWS_AS(ReduceLROnPlateau(sgd, {.cooldown = -1}), ValueError);
  CHECK_THROWS_AS(ReduceLROnPlateau(sgd, {.threshold = std::nan("")}), ValueError);
  CHECK_THROWS_AS(ReduceLROnPlateau(sgd, {.eps = -1}), ValueError);
  CHECK_THROWS_AS(ReduceLROnPlateau(sgd, {.min_lrs = {-1}}), ValueError);
  ReduceLROnPlateau schedule(sgd);
  CHECK_THROWS_WITH_AS(schedule.load_state({1, -1, 0, {.5}}),
                       "[ReduceLROnPlateau] a state must have counts >= 0 and rates for 1 groups, "
                       "got -1 bad metrics, a cooldown of 0 and 1 rates",
                       ValueError);
  CHECK_THROWS_AS(schedule.load_state({1, 0, 0, {}}), ValueError);
  CHECK_THROWS_AS(schedule.load_state({1, 0, 0, {std::nan("")}}), ValueError);
  CHECK(sgd.lr() == .5);
}

}  // namespace
}  // namespace accrue::optim
