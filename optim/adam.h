// Adam: steps scaled by running averages of gradients and of their squares.
#pragma once

#include "accrue/optim/optimizer.h"

namespace accrue::optim {

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;       ///< weight of the past in the average of gradients
  double beta2 = 0.999;     ///< weight of the past in the average of their squares
  double eps = 1e-8;        ///< added to the root of the squares
  double weight_decay = 0;  ///< adds this much of the parameter to its gradient
  bool amsgrad = false;     ///< divides by the largest average of squares so far
  bool maximize = false;    ///< climbs instead
  bool lerp = true;         ///< averages gradients as recent torch does; false: as torch 1.13
};

/// torch.optim.Adam to the bit: the roundings stand at kernels::AdamStep.
///
///     optim::Adam adam(net.parameters(), {.lr = 1e-3});
///
/// Squares that underflow leave eps as the divisor: a gradient of 1e-30 moves nothing, as in torch.
/// Ownership, threads: as Optimizer. Slots: `step`, `exp_avg`, `exp_avg_sq`, `max_exp_avg_sq`.
class Adam : public Optimizer {
 public:
  struct Group {
    ParameterList parameters;
    AdamOptions options;
  };

  /// Errors: ValueError for an lr, eps or weight_decay that is negative or not a finite float, a
  ///         beta outside [0, 1), and for parameters as Optimizer.
  Adam(const ParameterList& parameters, const AdamOptions& options);
  explicit Adam(const std::vector<Group>& groups);

 protected:
  enum class Decay : unsigned char { coupled, decoupled };

  Adam(const char* name, const std::vector<Group>& groups, Decay decay);

 private:
  void apply(std::span<const Gradient> gradients) override;
  std::optional<double> initial(std::size_t slot, int group) const override;

  std::vector<AdamOptions> options_;  ///< per group; lr and beta1 are the optimizer's
  Decay decay_;
};

}  // namespace accrue::optim
