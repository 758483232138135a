// Linear: the affine layer.
#pragma once

#include "accrue/nn/affine_layer.h"

namespace accrue::nn {

/// y = x weight^T + bias.
///
/// Shapes:  x [..., in], weight [out, in], bias [out], result [..., out]. Any size may be 0.
/// Init:    torch's bits, as AffineLayer with fan_in = in.
/// Order, window: as accrue::linear. Parameters: `weight`, then `bias`.
class Linear final : public AffineLayer {
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

  std::int64_t in_features() const { return weight().shape()[1]; }
  std::int64_t out_features() const { return weight().shape()[0]; }

 private:
  std::string options_str() const override;
};

}  // namespace accrue::nn
