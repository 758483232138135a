// RMSprop: steps scaled by running averages of squared gradients.
#pragma once

#include "accrue/optim/optimizer.h"

namespace accrue::optim {

struct RmspropOptions {
  double lr = 1e-2;
  double alpha = 0.99;      ///< weight of the past in the averages
  double eps = 1e-8;        ///< added to the root of the squares
  double weight_decay = 0;  ///< adds this much of the parameter to its gradient
  double momentum = 0;      ///< keeps a buffer of scaled gradients
  bool centered = false;    ///< divides by an estimate of the deviation: subtracts the mean squared
  bool maximize = false;    ///< climbs instead
};

/// torch.optim.RMSprop to the bit: the roundings stand at kernels::RmspropStep. Where rounding
/// makes a centered variance negative it counts as 0; torch's parameters become NaN there.
///
/// Ownership, threads: as Optimizer. Slots: `square_avg`, `grad_avg`, `momentum_buffer`.
class RMSprop final : public Optimizer {
 public:
  struct Group {
    ParameterList parameters;
    RmspropOptions options;
  };

  /// Errors: ValueError for an lr, eps, weight_decay or momentum that is negative or not a finite
  ///         float, an alpha outside [0, 1), and for parameters as Optimizer.
  RMSprop(const ParameterList& parameters, const RmspropOptions& options);
  explicit RMSprop(const std::vector<Group>& groups);

 private:
  void apply(std::span<const Gradient> gradients) override;
  std::optional<double> initial(std::size_t slot, int group) const override;

  std::vector<RmspropOptions> options_;  ///< per group; lr and momentum are the optimizer's
};

}  // namespace accrue::optim
