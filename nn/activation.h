// Activation layers.
#pragma once

#include "accrue/autograd/ops/unary.h"
#include "accrue/nn/layer.h"

namespace accrue::nn {

/// max(x, 0) for each element, as accrue::relu.
class ReLU final : public Layer {
 public:
  Variable forward(const Variable& x) override { return relu(x); }

 private:
  std::string type_name() const override { return "ReLU"; }
};

}  // namespace accrue::nn
