// Layer: a module that maps one variable to one variable.
#pragma once

#include "accrue/nn/module.h"

namespace accrue::nn {

/// The base of everything that fits into a Sequential. Ownership and threads as Module.
class Layer : public Module {
 public:
  virtual Variable forward(const Variable& x) = 0;
  Variable operator()(const Variable& x) { return forward(x); }
};

}  // namespace accrue::nn
