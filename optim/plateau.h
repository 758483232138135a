// ReduceLROnPlateau: smaller learning rates when a metric stops getting better.
#pragma once

#include "accrue/optim/optimizer.h"

#include <cstdint>

namespace accrue::optim {

struct PlateauOptions {
  bool maximize = false;       ///< larger metrics are better
  double factor = 0.1;         ///< of the rate after a reduction, in [0, 1)
  std::int64_t patience = 10;  ///< metrics in a row without gain that are let pass
  double threshold = 1e-4;     ///< gains below it do not count
  bool absolute = false;       ///< the threshold is a difference, not a part of the best metric
  std::int64_t cooldown = 0;   ///< metrics after a reduction that count as no bad ones
  std::vector<double> min_lrs = {0};  ///< one for all groups, or one per group
  double eps = 1e-8;                  ///< smaller reductions are not made
};

/// Where the schedule stands, to be saved and loaded.
struct PlateauState {
  double best = 0;
  std::int64_t num_bad = 0;
  std::int64_t cooldown_left = 0;
  std::vector<double> last_lrs;  ///< per group
};

/// torch.optim.lr_scheduler.ReduceLROnPlateau in the same doubles. Borrows the optimizer, which
/// must live longer. A metric of NaN is no gain.
class ReduceLROnPlateau {
 public:
  /// Errors: ValueError for a factor outside [0, 1), negative counts, thresholds, rates or eps, and
  ///         another number of min_lrs.
  ReduceLROnPlateau(Optimizer& optimizer, PlateauOptions options = {});

  /// To be called after each evaluation.
  void step(double metric);

  const PlateauState& state() const { return state_; }
  /// Continues where `state` was saved, and sets the optimizer's rates to those of then.
  /// Errors: ValueError for negative counts, another number of groups or an invalid rate.
  void load_state(const PlateauState& state);

 private:
  bool is_better(double metric) const;
  void reduce();

  Optimizer& optimizer_;
  PlateauOptions options_;
  PlateauState state_;
};

}  // namespace accrue::optim
