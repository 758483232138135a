// Schedules with a linear warm-up, as transformers has them: factors of the base rate.
#pragma once

#include "accrue/optim/schedule.h"

namespace accrue::optim {

// All count t from 0, in double. With W = warmup and T = total, the factor is t / max(1, W) for
// t < W unless a line says otherwise; then p = (t - W) / max(1, T - W). With a warm-up the first
// update has the rate 0. Errors of all: ValueError for negative counts and for numbers that are not
// finite.

/// Factor 1.
LambdaLR constant_schedule(Optimizer& optimizer);

/// Factor 1 after the warm-up.
LambdaLR constant_schedule_with_warmup(Optimizer& optimizer, std::int64_t warmup);

/// Then max(0, (T - t) / max(1, T - W)).
LambdaLR linear_schedule_with_warmup(Optimizer& optimizer, std::int64_t warmup, std::int64_t total);

/// Then max(0, (1 + cos(2 pi cycles p)) / 2).
LambdaLR cosine_schedule_with_warmup(Optimizer& optimizer,
                                     std::int64_t warmup,
                                     std::int64_t total,
                                     double cycles = 0.5);

/// Then (1 + cos(pi (cycles p mod 1))) / 2, and 0 from step T on.
LambdaLR cosine_with_restarts_schedule_with_warmup(Optimizer& optimizer,
                                                   std::int64_t warmup,
                                                   std::int64_t total,
                                                   double cycles = 1);

/// Then from the base rate to `lr_end` as (1 - p)^power, and lr_end after step T.
/// Errors also: ValueError unless each base rate is above lr_end >= 0.
LambdaLR polynomial_schedule_with_warmup(Optimizer& optimizer,
                                         std::int64_t warmup,
                                         std::int64_t total,
                                         double lr_end = 1e-7,
                                         double power = 1);

/// Then 1 / sqrt((t + timescale - W) / timescale); a timescale of 0 stands for W, or 10000 without
/// a warm-up.
LambdaLR inverse_sqrt_schedule(Optimizer& optimizer,
                               std::int64_t warmup,
                               std::int64_t timescale = 0);

/// Then max(0, f (1 - min_rate) + min_rate) where f is the factor of the cosine schedule.
LambdaLR cosine_with_min_lr_schedule_with_warmup(Optimizer& optimizer,
                                                 std::int64_t warmup,
                                                 std::int64_t total,
                                                 double min_rate,
                                                 double cycles = 0.5);

/// The same one step earlier, p = (t - W + 1) / max(1, T - W): it rises again after step T - 1.
/// Warm-up (t + 1) / max(1, W); or from `warmup_rate` at step 0 to 1 at step W - 1, unless that is
/// negative.
LambdaLR cosine_warmup_with_min_lr_schedule(Optimizer& optimizer,
                                            std::int64_t warmup,
                                            std::int64_t total,
                                            double min_rate,
                                            double warmup_rate = -1,
                                            double cycles = 0.5);

/// How warmup_stable_decay_schedule rises, and, backwards, falls.
enum class Ramp : unsigned char { linear, cosine, one_minus_sqrt };

struct StableDecay {
  std::int64_t warmup = 0;
  std::int64_t stable = 0;
  std::int64_t decay = 0;
  double min_rate = 0;  ///< the factor before the rise and after the fall
  double cycles = 0.5;  ///< of a cosine fall
  Ramp rise = Ramp::linear;
  Ramp fall = Ramp::cosine;
};

/// Rises over `warmup` steps, stays at 1 for `stable`, falls over `decay`. With q the part of a
/// ramp done so far, it rises as q, (1 - cos(pi q)) / 2 or 1 - sqrt(1 - q), and falls as 1 - q, (1
/// + cos(2 pi cycles q)) / 2 or 1 - sqrt(q), scaled to [min_rate, 1].
LambdaLR warmup_stable_decay_schedule(Optimizer& optimizer, const StableDecay& shape);

}  // namespace accrue::optim
