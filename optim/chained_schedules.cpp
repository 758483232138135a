#include "accrue/optim/chained_schedules.h"

#include "accrue/core/error.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace accrue::optim {

StepLR::StepLR(Optimizer& optimizer, std::int64_t size, double gamma)
    : Schedule(optimizer), size_(size), gamma_(gamma) {
  ACCRUE_CHECK(size >= 1, ValueError, "StepLR", "size must be >= 1, got ", size);
  check_option("StepLR", "gamma", gamma);
  start();
}

double StepLR::lr_at(int group, std::int64_t t) const {
  return t == 0 || t % size_ != 0 ? current_lr(group) : current_lr(group) * gamma_;
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<std::int64_t> milestones, double gamma)
    : Schedule(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  check_option("MultiStepLR", "gamma", gamma);
  start();
}

double MultiStepLR::lr_at(int group, std::int64_t t) const {
  const auto times = std::count(milestones_.begin(), milestones_.end(), t);
  if (times == 0) return current_lr(group);
  return current_lr(group) * std::pow(gamma_, static_cast<double>(times));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma)
    : Schedule(optimizer), gamma_(gamma) {
  check_option("ExponentialLR", "gamma", gamma);
  start();
}

double ExponentialLR::lr_at(int group, std::int64_t t) const {
  return t == 0 ? current_lr(group) : current_lr(group) * gamma_;
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, std::int64_t half_period, double min_lr)
    : Schedule(optimizer), half_period_(half_period), min_lr_(min_lr) {
  ACCRUE_CHECK(half_period >= 1,
               ValueError,
               "CosineAnnealingLR",
               "half_period must be >= 1, got ",
               half_period);
  check_option("CosineAnnealingLR", "min_lr", min_lr);
  start();
}

double CosineAnnealingLR::lr_at(int group, std::int64_t t) const {
  constexpr double kPi = std::numbers::pi;
  const auto half_period = static_cast<double>(half_period_);
  if (t == 0) return current_lr(group);
  if ((t - 1 - half_period_) % (2 * half_period_) == 0) {
    const double rise = (base_lr(group) - min_lr_) * (1.0 - std::cos(kPi / half_period));
    return current_lr(group) + rise / 2.0;
  }
  const auto wave = [&](std::int64_t step) {
    return 1.0 + std::cos(kPi * static_cast<double>(step) / half_period);
  };
  return wave(t) / wave(t - 1) * (current_lr(group) - min_lr_) + min_lr_;
}

}  // namespace accrue::optim
