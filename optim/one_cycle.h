// OneCycleLR: one rise to the largest rate and one fall, the momentum moving the other way.
#pragma once

#include "accrue/optim/schedule.h"

namespace accrue::optim {

enum class Anneal : unsigned char { cosine, linear };

struct OneCycleOptions {
  std::vector<double> max_lrs = {};  ///< one for all groups, or one per group
  std::int64_t total = 0;            ///< steps; stepping further throws
  double rise = 0.3;                 ///< part of the steps that the rise takes
  double div = 25;                   ///< the first rate is max_lr / div
  double final_div = 1e4;            ///< the last rate is max_lr / div / final_div
  Anneal anneal = Anneal::cosine;
  bool cycle_momentum = true;  ///< from max to base and back; beta1 for Adam
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  bool three_phase = false;  ///< falls back to the first rate before it falls to the last
};

/// torch.optim.lr_scheduler.OneCycleLR in the same doubles.
///
///     optim::OneCycleLR schedule(sgd, {.max_lrs = {0.1}, .total = 1000});
///
/// Step total - 1 has the last rate. A loaded state sets the momenta too.
/// Errors:  ValueError for counts, parts, divisors, rates or momenta that make no cycle, and in
///          step() beyond `total`; StateError for an optimizer without momentum.
class OneCycleLR final : public Schedule {
 public:
  OneCycleLR(Optimizer& optimizer, OneCycleOptions options);

  bool has_ended() const override { return last_step() >= options_.total; }

 private:
  enum class Corner : unsigned char { first, top, last };
  /// Where a step lies: `part` of the way between two corners.
  struct Place {
    Corner from, to;
    double part;
  };

  Place place_of(std::int64_t t) const;
  double between(double from, double to, double part) const;
  double lr_of(Corner corner, int group) const;
  double lr_at(int group, std::int64_t t) const override;
  void moved_to(std::int64_t t) override;

  OneCycleOptions options_;
};

}  // namespace accrue::optim
