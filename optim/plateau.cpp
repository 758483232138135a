#include "accrue/optim/plateau.h"

#include "accrue/core/error.h"

#include <algorithm>
#include <cmath>

namespace accrue::optim {
namespace {

constexpr const char* kName = "ReduceLROnPlateau";

void check_options(const PlateauOptions& o) {
  check_decay(kName, "factor", o.factor);
  ACCRUE_CHECK(o.patience >= 0, ValueError, kName, "patience must be >= 0, got ", o.patience);
  ACCRUE_CHECK(o.cooldown >= 0, ValueError, kName, "cooldown must be >= 0, got ", o.cooldown);
  check_option(kName, "threshold", o.threshold);
  check_option(kName, "eps", o.eps);
  for (const double lr : o.min_lrs) check_option(kName, "min_lr", lr);
}

}  // namespace

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, PlateauOptions options)
    : optimizer_(optimizer), options_(std::move(options)) {
  check_options(options_);
  const auto groups = static_cast<std::size_t>(optimizer.num_groups());
  if (options_.min_lrs.size() == 1) options_.min_lrs.resize(groups, options_.min_lrs[0]);
  ACCRUE_CHECK(options_.min_lrs.size() == groups,
               ValueError,
               kName,
               "one min_lr or one per group is needed, got ",
               options_.min_lrs.size(),
               " for ",
               groups,
               " groups");
  state_.best = options_.maximize ? -HUGE_VAL : HUGE_VAL;
  for (int group = 0; group < optimizer.num_groups(); ++group)
    state_.last_lrs.push_back(optimizer.lr(group));
}

bool ReduceLROnPlateau::is_better(double metric) const {
  const double threshold = options_.threshold, best = state_.best;
  if (options_.maximize)
    return metric > (options_.absolute ? best + threshold : best * (threshold + 1.0));
  return metric < (options_.absolute ? best - threshold : best * (1.0 - threshold));
}

void ReduceLROnPlateau::step(double metric) {
  if (is_better(metric)) {
    state_.best = metric;
    state_.num_bad = 0;
  } else {
    ++state_.num_bad;
  }
  if (state_.cooldown_left > 0) {
    --state_.cooldown_left;
    state_.num_bad = 0;
  }
  if (state_.num_bad > options_.patience) reduce();
  for (int group = 0; group < optimizer_.num_groups(); ++group)
    state_.last_lrs[static_cast<std::size_t>(group)] = optimizer_.lr(group);
}

void ReduceLROnPlateau::reduce() {
  for (int group = 0; group < optimizer_.num_groups(); ++group) {
    const double lr = optimizer_.lr(group);
    const double min_lr = options_.min_lrs[static_cast<std::size_t>(group)];
    const double reduced = std::max(lr * options_.factor, min_lr);
    if (lr - reduced > options_.eps) optimizer_.set_lr(reduced, group);
  }
  state_.cooldown_left = options_.cooldown;
  state_.num_bad = 0;
}

void ReduceLROnPlateau::load_state(const PlateauState& state) {
  const auto groups = static_cast<std::size_t>(optimizer_.num_groups());
  ACCRUE_CHECK(state.num_bad >= 0 && state.cooldown_left >= 0 && state.last_lrs.size() == groups,
               ValueError,
               kName,
               "a state must have counts >= 0 and rates for ",
               groups,
               " groups, got ",
               state.num_bad,
               " bad metrics, a cooldown of ",
               state.cooldown_left,
               " and ",
               state.last_lrs.size(),
               " rates");
  for (const double lr : state.last_lrs) check_option(kName, "lr", lr);
  state_ = state;
  for (int group = 0; group < optimizer_.num_groups(); ++group)
    optimizer_.set_lr(state_.last_lrs[static_cast<std::size_t>(group)], group);
}

}  // namespace accrue::optim
