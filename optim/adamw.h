// AdamW: Adam whose weight decay shrinks the parameters and leaves the averages alone.
#pragma once

#include "accrue/optim/adam.h"

namespace accrue::optim {

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;  ///< each step multiplies the parameter by 1 - lr * weight_decay
  bool amsgrad = false;
  bool maximize = false;
  bool lerp = true;  ///< as in AdamOptions, like all without a comment
};

/// torch.optim.AdamW to the bit. Ownership, threads, slots: as Adam.
///
///     optim::AdamW adamw({{net.parameters(), {.lr = 3e-4, .weight_decay = 0.1}}});
class AdamW final : public Adam {
 public:
  struct Group {
    ParameterList parameters;
    AdamWOptions options;
  };

  /// Errors: as Adam.
  AdamW(const ParameterList& parameters, const AdamWOptions& options);
  explicit AdamW(const std::vector<Group>& groups);
};

}  // namespace accrue::optim
