#include "accrue/optim/warmup_schedules.h"

#include "accrue/core/error.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace accrue::optim {
namespace {

constexpr double kPi = std::numbers::pi;

double ratio(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) / static_cast<double>(std::max<std::int64_t>(1, b));
}

void check_count(const char* operation, const char* name, std::int64_t count) {
  ACCRUE_CHECK(count >= 0, ValueError, operation, name, " must be >= 0, got ", count);
}

void check_counts(const char* operation, std::int64_t warmup, std::int64_t total) {
  check_count(operation, "warmup", warmup);
  check_count(operation, "total", total);
}

void check_number(const char* operation, const char* name, double value) {
  ACCRUE_CHECK(std::isfinite(value), ValueError, operation, name, " must be finite, got ", value);
}

/// A half wave from 1 down to 0 for one half cycle. The products stand in torch's order.
double cosine(double cycles, double progress) {
  return 0.5 * (1.0 + std::cos(kPi * cycles * 2.0 * progress));
}

/// lr = base * rise before `warmup` steps are done, base * fall(t) after.
template <class Fall>
LambdaLR after_warmup(Optimizer& optimizer, std::int64_t warmup, Fall fall) {
  return LambdaLR(optimizer,
                  [=](std::int64_t t) { return t < warmup ? ratio(t, warmup) : fall(t); });
}

double rise_of(Ramp ramp, double progress) {
  if (ramp == Ramp::linear) return progress;
  if (ramp == Ramp::cosine) return 0.5 * (1.0 - std::cos(kPi * progress));
  return 1.0 - std::sqrt(1.0 - progress);
}

double fall_of(Ramp ramp, double cycles, double progress) {
  if (ramp == Ramp::linear) return 1.0 - progress;
  if (ramp == Ramp::cosine) return cosine(cycles, progress);
  return 1.0 - std::sqrt(progress);
}

}  // namespace

LambdaLR constant_schedule(Optimizer& optimizer) {
  return LambdaLR(optimizer, [](std::int64_t) { return 1.0; });
}

LambdaLR constant_schedule_with_warmup(Optimizer& optimizer, std::int64_t warmup) {
  check_count("constant_schedule_with_warmup", "warmup", warmup);
  return after_warmup(optimizer, warmup, [](std::int64_t) { return 1.0; });
}

LambdaLR linear_schedule_with_warmup(Optimizer& optimizer,
                                     std::int64_t warmup,
                                     std::int64_t total) {
  check_counts("linear_schedule_with_warmup", warmup, total);
  return after_warmup(optimizer, warmup, [=](std::int64_t t) {
    return std::max(0.0, ratio(total - t, total - warmup));
  });
}

LambdaLR cosine_schedule_with_warmup(Optimizer& optimizer,
                                     std::int64_t warmup,
                                     std::int64_t total,
                                     double cycles) {
  check_counts("cosine_schedule_with_warmup", warmup, total);
  check_number("cosine_schedule_with_warmup", "cycles", cycles);
  return after_warmup(optimizer, warmup, [=](std::int64_t t) {
    return std::max(0.0, cosine(cycles, ratio(t - warmup, total - warmup)));
  });
}

LambdaLR cosine_with_restarts_schedule_with_warmup(Optimizer& optimizer,
                                                   std::int64_t warmup,
                                                   std::int64_t total,
                                                   double cycles) {
  constexpr const char* kName = "cosine_with_restarts_schedule_with_warmup";
  check_counts(kName, warmup, total);
  ACCRUE_CHECK(cycles >= 0 && std::isfinite(cycles),
               ValueError,
               kName,
               "cycles must be >= 0 and finite, got ",
               cycles);
  return after_warmup(optimizer, warmup, [=](std::int64_t t) {
    const double progress = ratio(t - warmup, total - warmup);
    if (progress >= 1) return 0.0;
    return std::max(0.0, 0.5 * (1.0 + std::cos(kPi * std::fmod(cycles * progress, 1.0))));
  });
}

LambdaLR polynomial_schedule_with_warmup(
    Optimizer& optimizer, std::int64_t warmup, std::int64_t total, double lr_end, double power) {
  constexpr const char* kName = "polynomial_schedule_with_warmup";
  check_counts(kName, warmup, total);
  check_option(kName, "lr_end", lr_end);
  check_number(kName, "power", power);
  std::vector<LambdaLR::Factor> factors;
  for (int group = 0; group < optimizer.num_groups(); ++group) {
    const double lr = optimizer.lr(group);
    ACCRUE_CHECK(lr > lr_end, ValueError, kName, "lr must be above lr_end ", lr_end, ", got ", lr);
    factors.emplace_back([=](std::int64_t t) {
      if (t < warmup) return ratio(t, warmup);
      if (t > total) return lr_end / lr;
      const double left = 1.0 - ratio(t - warmup, total - warmup);
      return ((lr - lr_end) * std::pow(left, power) + lr_end) / lr;
    });
  }
  return LambdaLR(optimizer, std::move(factors));
}

LambdaLR inverse_sqrt_schedule(Optimizer& optimizer, std::int64_t warmup, std::int64_t timescale) {
  check_count("inverse_sqrt_schedule", "warmup", warmup);
  check_count("inverse_sqrt_schedule", "timescale", timescale);
  const std::int64_t scale = timescale > 0 ? timescale : warmup > 0 ? warmup : 10000;
  return after_warmup(optimizer, warmup, [=](std::int64_t t) {
    return 1.0 / std::sqrt(ratio(t + (scale - warmup), scale));
  });
}

LambdaLR cosine_with_min_lr_schedule_with_warmup(
    Optimizer& optimizer, std::int64_t warmup, std::int64_t total, double min_rate, double cycles) {
  constexpr const char* kName = "cosine_with_min_lr_schedule_with_warmup";
  check_counts(kName, warmup, total);
  check_option(kName, "min_rate", min_rate);
  check_number(kName, "cycles", cycles);
  return after_warmup(optimizer, warmup, [=](std::int64_t t) {
    const double factor = cosine(cycles, ratio(t - warmup, total - warmup));
    return std::max(0.0, factor * (1.0 - min_rate) + min_rate);
  });
}

LambdaLR cosine_warmup_with_min_lr_schedule(Optimizer& optimizer,
                                            std::int64_t warmup,
                                            std::int64_t total,
                                            double min_rate,
                                            double warmup_rate,
                                            double cycles) {
  constexpr const char* kName = "cosine_warmup_with_min_lr_schedule";
  check_counts(kName, warmup, total);
  check_option(kName, "min_rate", min_rate);
  check_number(kName, "warmup_rate", warmup_rate);
  check_number(kName, "cycles", cycles);
  return LambdaLR(optimizer, [=](std::int64_t t) {
    if (t < warmup && warmup_rate >= 0)
      return warmup_rate + (1.0 - warmup_rate) * ratio(t, warmup - 1);
    if (t < warmup) return ratio(t + 1, warmup);
    const double factor = cosine(cycles, ratio(t - warmup + 1, total - warmup));
    return std::max(0.0, factor * (1.0 - min_rate) + min_rate);
  });
}

LambdaLR warmup_stable_decay_schedule(Optimizer& optimizer, const StableDecay& shape) {
  constexpr const char* kName = "warmup_stable_decay_schedule";
  check_count(kName, "warmup", shape.warmup);
  check_count(kName, "stable", shape.stable);
  check_count(kName, "decay", shape.decay);
  check_option(kName, "min_rate", shape.min_rate);
  check_number(kName, "cycles", shape.cycles);
  return LambdaLR(optimizer, [shape](std::int64_t t) {
    const auto scaled = [&](double factor) {
      return std::max(0.0, factor * (1.0 - shape.min_rate) + shape.min_rate);
    };
    if (t < shape.warmup) return scaled(rise_of(shape.rise, ratio(t, shape.warmup)));
    const std::int64_t fallen = t - shape.warmup - shape.stable;
    if (fallen < 0) return 1.0;
    if (fallen >= shape.decay) return shape.min_rate;
    return scaled(fall_of(shape.fall, shape.cycles, ratio(fallen, shape.decay)));
  });
}

}  // namespace accrue::optim
