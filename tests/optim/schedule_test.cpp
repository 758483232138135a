// Schedules: groups, resuming, refused rates.
#include "accrue/optim/schedule.h"

#include "accrue/optim/sgd.h"
#include "accrue/optim/warmup_schedules.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>

namespace accrue::optim {
namespace {

using test::There;

Variable leaf() { return Variable::leaf(There::zeros({1})); }

TEST_CASE("optim.schedule: each group has its base rate and may have its own factor") {
  SGD sgd({{{leaf()}, {.lr = 1}}, {{leaf()}, {.lr = 10}}});
  LambdaLR shared(sgd, [](std::int64_t t) { return 1.0 / static_cast<double>(1 + t); });
  shared.step();
  CHECK(sgd.lr(0) == .5);
  CHECK(sgd.lr(1) == 5);

  SGD other({{{leaf()}, {.lr = 1}}, {{leaf()}, {.lr = 10}}});
  LambdaLR own(
      other, {[](std::int64_t) { return 2.0; }, [](std::int64_t t) { return t > 0 ? 3.0 : 1.0; }});
  CHECK(own.last_lrs() == std::vector<double>{2, 10});
  own.step();
  CHECK(own.last_lrs() == std::vector<double>{2, 30});
}

TEST_CASE("optim.schedule: a resumed schedule continues in the same bits") {
  SGD sgd({leaf()}, {.lr = .1});
  LambdaLR schedule = linear_schedule_with_warmup(sgd, 3, 100);
  for (int step = 0; step < 50; ++step) schedule.step();
  const ScheduleState saved = schedule.state();

  SGD fresh({leaf()}, {.lr = .7});
  LambdaLR resumed = linear_schedule_with_warmup(fresh, 3, 100);
  resumed.load_state(saved);
  CHECK(fresh.lr() == sgd.lr());
  for (int step = 0; step < 60; ++step) {
    schedule.step();
    resumed.step();
    CHECK(fresh.lr() == sgd.lr());
  }
  CHECK(resumed.last_step() == 110);
  resumed.load_state({std::int64_t{1} << 40, saved.base_lrs, saved.last_lrs});
  resumed.step();
  CHECK(resumed.last_step() == (std::int64_t{1} << 40) + 1);
  CHECK(fresh.lr() == 0);
}

TEST_CASE("optim.schedule: rates that are no rates are refused and nothing moves") {
  SGD sgd({leaf()}, {.lr = .5});
  LambdaLR schedule(sgd, [](std::int64_t t) { return t == 2 ? std::nan("") : 1.0; });
  schedule.step();
  CHECK_THROWS_WITH_AS(
      schedule.step(), "[schedule] lr must be >= 0 and finite in float32, got nan", ValueError);
  CHECK(schedule.last_step() == 1);
  CHECK(sgd.lr() == .5);
  CHECK_THROWS_AS(LambdaLR(sgd, [](std::int64_t) { return -1.0; }), ValueError);
  CHECK(sgd.lr() == .5);
}

TEST_CASE("optim.schedule: wrong arguments and states are refused") {
  SGD sgd({leaf()}, {.lr = .5});
  CHECK_THROWS_WITH_AS(LambdaLR(sgd, std::vector<LambdaLR::Factor>()),
                       "[LambdaLR] one factor per group is needed, got 0 for 1 groups",
                       ValueError);
  CHECK_THROWS_WITH_AS(LambdaLR(sgd, LambdaLR::Factor()),
                       "[LambdaLR] a factor must be callable, got null",
                       ValueError);
  LambdaLR schedule = constant_schedule_with_warmup(sgd, 0);
  CHECK_THROWS_WITH_AS(
      schedule.load_state({3, {.5, .5}, {.5}}),
      "[schedule] a state must have a step >= 0 and rates for 1 groups, got step 3 and 2 base and "
      "1 last rates",
      ValueError);
  CHECK_THROWS_AS(schedule.load_state({-1, {.5}, {.5}}), ValueError);
  CHECK_THROWS_AS(schedule.load_state({1, {.5}, {std::nan("")}}), ValueError);
  CHECK(sgd.lr() == .5);
  CHECK(schedule.last_step() == 0);
}

}  // namespace
}  // namespace accrue::optim
