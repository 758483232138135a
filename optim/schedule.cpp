#include "accrue/optim/schedule.h"

#include "accrue/core/error.h"

namespace accrue::optim {

Schedule::Schedule(Optimizer& optimizer) : optimizer_(optimizer) {
  for (int group = 0; group < num_groups(); ++group) {
    state_.base_lrs.push_back(optimizer.lr(group));
  }
}

void Schedule::start() { move_to(0); }

void Schedule::step() { move_to(state_.step + 1); }

void Schedule::move_to(std::int64_t t) {
  std::vector<double> lrs;
  for (int group = 0; group < num_groups(); ++group) {
    lrs.push_back(lr_at(group, t));
    check_option("schedule", "lr", lrs.back());
  }
  load_state({t, state_.base_lrs, std::move(lrs)});
}

void Schedule::load_state(const ScheduleState& state) {
  const auto groups = static_cast<std::size_t>(num_groups());
  ACCRUE_CHECK(
      state.step >= 0 && state.base_lrs.size() == groups && state.last_lrs.size() == groups,
      ValueError,
      "schedule",
      "a state must have a step >= 0 and rates for ",
      groups,
      " groups, got step ",
      state.step,
      " and ",
      state.base_lrs.size(),
      " base and ",
      state.last_lrs.size(),
      " last rates");
  for (const double lr : state.base_lrs) check_option("schedule", "base lr", lr);
  for (const double lr : state.last_lrs) check_option("schedule", "lr", lr);
  state_ = state;
  for (int group = 0; group < num_groups(); ++group)
    optimizer_.set_lr(state_.last_lrs[static_cast<std::size_t>(group)], group);
  moved_to(state_.step);
}

LambdaLR::LambdaLR(Optimizer& optimizer, const Factor& factor)
    : LambdaLR(optimizer,
               std::vector<Factor>(static_cast<std::size_t>(optimizer.num_groups()), factor)) {}

LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Factor> factors)
    : Schedule(optimizer), factors_(std::move(factors)) {
  ACCRUE_CHECK(factors_.size() == static_cast<std::size_t>(num_groups()),
               ValueError,
               "LambdaLR",
               "one factor per group is needed, got ",
               factors_.size(),
               " for ",
               num_groups(),
               " groups");
  for (const Factor& factor : factors_) {
    ACCRUE_CHECK(factor, ValueError, "LambdaLR", "a factor must be callable, got null");
  }
  start();
}

double LambdaLR::lr_at(int group, std::int64_t t) const {
  return base_lr(group) * factors_[static_cast<std::size_t>(group)](t);
}

}  // namespace accrue::optim
