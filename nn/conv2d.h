// Conv2d: the convolutional layer.
#pragma once

#include "accrue/autograd/ops/conv2d.h"
#include "accrue/nn/affine_layer.h"

namespace accrue::nn {

/// y = conv(x, weight) + bias; padding is zeros.
///
///     nn::Conv2d conv(1, 16, 3, {.padding = 1});
///
/// Shapes:  x [N, in, H, W], weight [out, in / groups, KH, KW], bias [out], result
///          [N, out, OH, OW].
/// Init:    torch's bits, as AffineLayer with fan_in = in / groups * KH * KW.
/// Order, window: as accrue::conv2d. Parameters: `weight`, then `bias`.
class Conv2d final : public AffineLayer {
 public:
  /// Errors: ValueError for negative channels, channels that groups do not divide, a kernel
  /// below 1.
  Conv2d(std::int64_t in_channels,
         std::int64_t out_channels,
         Size2 kernel_size,
         const Conv2dOptions& options = {},
         bool bias = true,
         Generator& generator = default_generator());
  /// A layer of given parameters: tied to another layer that holds them, or in float64.
  /// Errors: ValueError unless both are leaves; ShapeError, DTypeError.
  explicit Conv2d(const Variable& weight,
                  const Variable& bias = {},
                  const Conv2dOptions& options = {});

  /// Errors: those of accrue::conv2d, also for options out of range.
  Variable forward(const Variable& x) override { return conv2d(x, weight(), bias(), options_); }

  const Conv2dOptions& options() const { return options_; }

 private:
  std::string options_str() const override;

  Conv2dOptions options_;
};

}  // namespace accrue::nn
