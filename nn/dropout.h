// Dropout: the layer that zeroes elements while training.
#pragma once

#include "accrue/nn/layer.h"

namespace accrue::nn {

/// accrue::dropout while training, nothing in evaluation.
///
/// In a window the mask depends on this layer's path in the model (Module::path) and on how often
/// it was applied in the micro-batch, never on the split.
class Dropout final : public Layer {
 public:
  /// Errors: ValueError for p outside [0, 1].
  explicit Dropout(double p = 0.5);

  Variable forward(const Variable& x) override;

 private:
  std::string options_str() const override;

  double p_;
};

}  // namespace accrue::nn
