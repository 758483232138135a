// Layer: a module that maps one variable to one variable.
#pragma once

#include "accrue/autograd/autocast.h"
#include "accrue/nn/module.h"

#include <optional>

namespace accrue::nn {

/// The base of everything that fits into a Sequential. Ownership and threads as Module.
class Layer : public Module {
 public:
  virtual Variable forward(const Variable& x) = 0;
  Variable operator()(const Variable& x) {
    if (half_ == DType::float32) return forward(x);
    const Autocast scope(half_);
    return forward(x);
  }
  /// Lets calls, not forward() itself, compute under Autocast(*half); none: as their caller does.
  void set_autocast(std::optional<DType> half) { half_ = half.value_or(DType::float32); }

 private:
  DType half_ = DType::float32;  ///< float32: none
};

}  // namespace accrue::nn
