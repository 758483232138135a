// AffineLayer: what Linear and Conv2d have in common, a weight and perhaps a bias.
#pragma once

#include "accrue/core/generator.h"
#include "accrue/nn/layer.h"

namespace accrue::nn {

/// Owns the parameters `weight` [out, ...] and `bias` [out], in this order.
class AffineLayer : public Layer {
 public:
  Variable weight() const { return weight_; }
  /// Undefined in a layer without bias.
  Variable bias() const { return bias_; }

 protected:
  /// New parameters in torch's bits: weight, then bias, uniform within sqrt(3) * (sqrt(1/3) /
  /// sqrt(fan_in)) and 1 / sqrt(fan_in), both computed in double, for fan_in inputs of an output.
  void make_parameters(const Shape& weight, bool bias, Generator& generator);
  /// Given parameters. `layer` names this one in errors and `form` what the weight must be.
  /// Errors: ValueError unless both are leaves; ShapeError unless the weight has `rank` dimensions
  ///         and the bias its first size, DTypeError unless they have one dtype.
  void adopt_parameters(
      const char* layer, const char* form, int rank, const Variable& weight, const Variable& bias);

 private:
  Variable weight_;
  Variable bias_;
};

}  // namespace accrue::nn
