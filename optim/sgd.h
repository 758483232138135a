// SGD: stochastic gradient descent with momentum.
#pragma once

#include "accrue/optim/optimizer.h"

namespace accrue::optim {

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;      ///< keeps a buffer per parameter, made at its first step
  double dampening = 0;     ///< weakens gradients from the second step on, as torch does
  double weight_decay = 0;  ///< adds this much of the parameter to its gradient
  bool nesterov = false;
  bool maximize = false;  ///< climbs instead
};

/// torch.optim.SGD to the bit: the roundings stand at kernels::SgdStep.
///
///     optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
///
/// Ownership, threads: as Optimizer. Slot: `momentum`.
class SGD final : public Optimizer {
 public:
  struct Group {
    ParameterList parameters;
    SgdOptions options;
  };

  /// Errors: ValueError for an lr, momentum or weight_decay that is negative or not a finite float,
  ///         a dampening that is not finite, Nesterov without momentum or with dampening, and for
  ///         parameters as Optimizer.
  SGD(const ParameterList& parameters, const SgdOptions& options);
  explicit SGD(const std::vector<Group>& groups);

 private:
  void apply(std::span<const Gradient> gradients) override;
  std::optional<double> initial(std::size_t slot, int group) const override;

  std::vector<SgdOptions> options_;  ///< per group; lr and momentum are the optimizer's
};

}  // namespace accrue::optim
