// Adagrad: steps scaled by the sums of squared gradients.
#pragma once

#include "accrue/optim/optimizer.h"

namespace accrue::optim {

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;                   ///< step t has the rate lr / (1 + (t - 1) * lr_decay)
  double weight_decay = 0;               ///< adds this much of the parameter to its gradient
  double initial_accumulator_value = 0;  ///< the sums before the first step
  double eps = 1e-10;                    ///< added to the root of the sums
  bool maximize = false;                 ///< climbs instead
};

/// torch.optim.Adagrad to the bit: the roundings stand at kernels::AdagradStep.
///
/// Ownership, threads: as Optimizer. Slots: `step`, `sum`.
class Adagrad final : public Optimizer {
 public:
  struct Group {
    ParameterList parameters;
    AdagradOptions options;
  };

  /// Errors: ValueError for an option that is negative or not a finite float, and for parameters as
  ///         Optimizer.
  Adagrad(const ParameterList& parameters, const AdagradOptions& options);
  explicit Adagrad(const std::vector<Group>& groups);

 private:
  void apply(std::span<const Gradient> gradients) override;
  std::optional<double> initial(std::size_t slot, int group) const override;

  std::vector<AdagradOptions> options_;  ///< per group; lr is the optimizer's
};

}  // namespace accrue::optim
