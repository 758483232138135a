// Linear: the affine layer.
#pragma once

#include "accrue/core/generator.h"
#include "accrue/nn/layer.h"

namespace accrue::nn {

/// y = x weight^T + bias.
///
/// Shapes:  x [..., in], weight [out, in], bias [out], result [..., out]. Any size may be 0.
/// Init:    torch's bits: weight, then bias, uniform within sqrt(3) * (sqrt(1/3) / sqrt(in)) and
///          1 / sqrt(in), both computed in double.
/// Order, window: as accrue::linear. Parameters: `weight`, then `bias`.
class Linear final : public Layer {
 public:
  /// Errors: ValueError for negative sizes.
  Linear(std::int64_t in,
         std::int64_t out,
         bool bias = true,
         Generator& generator = default_generator());
  /// A layer of given parameters: tied to another layer that holds them, or in float64.
  /// Errors: ValueError unless both are leaves; ShapeError, DTypeError.
  explicit Linear(const Variable& weight, const Variable& bias = {});

  /// Errors: ShapeError unless x has `in` columns, DTypeError.
  Variable forward(const Variable& x) override;

  std::int64_t in_features() const { return weight_.shape()[1]; }
  std::int64_t out_features() const { return weight_.shape()[0]; }
  Variable weight() const { return weight_; }
  /// Undefined in a layer without bias.
  Variable bias() const { return bias_; }

 private:
  std::string options_str() const override;

  Variable weight_;
  Variable bias_;
};

}  // namespace accrue::nn
