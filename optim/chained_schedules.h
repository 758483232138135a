// Schedules that change the rate of the step before, as torch's do: rounding adds up, and rates set
// from outside are carried on.
#pragma once

#include "accrue/optim/schedule.h"

namespace accrue::optim {

/// Multiplies the rates by gamma every `size` steps.
/// Errors: ValueError unless size >= 1 and gamma is a float >= 0.
class StepLR final : public Schedule {
 public:
  StepLR(Optimizer& optimizer, std::int64_t size, double gamma = 0.1);

 private:
  double lr_at(int group, std::int64_t t) const override;

  std::int64_t size_;
  double gamma_;
};

/// Multiplies the rates by gamma at each milestone, by gamma^n at one given n times.
/// Errors: ValueError unless gamma is a float >= 0.
class MultiStepLR final : public Schedule {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<std::int64_t> milestones, double gamma = 0.1);

 private:
  double lr_at(int group, std::int64_t t) const override;

  std::vector<std::int64_t> milestones_;
  double gamma_;
};

/// Multiplies the rates by gamma at each step. Errors: ValueError unless gamma is a float >= 0.
class ExponentialLR final : public Schedule {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 private:
  double lr_at(int group, std::int64_t t) const override;

  double gamma_;
};

/// From the base rate to `min_lr` in half a cosine wave of `half_period` steps, and back.
/// Errors: ValueError unless half_period >= 1 and min_lr is a float >= 0.
class CosineAnnealingLR final : public Schedule {
 public:
  CosineAnnealingLR(Optimizer& optimizer, std::int64_t half_period, double min_lr = 0);

 private:
  double lr_at(int group, std::int64_t t) const override;

  std::int64_t half_period_;
  double min_lr_;
};

}  // namespace accrue::optim
