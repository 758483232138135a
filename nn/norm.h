// LayerNorm and RMSNorm: normalisation over the last dimensions.
#pragma once

#include "accrue/nn/layer.h"

#include <optional>

namespace accrue::nn {

/// (x - mean) / sqrt(variance + eps) * weight + bias over the last dimensions.
///
/// Shapes:  x [..., normalized_shape], weight and bias normalized_shape, result as x.
/// Init:    weight 1, bias 0. Parameters: `weight`, then `bias`; none without elementwise_affine.
/// Order, window: as accrue::layer_norm.
class LayerNorm final : public Layer {
 public:
  /// Errors: ValueError for a shape without dimensions.
  explicit LayerNorm(const Shape& normalized_shape,
                     double eps = 1e-5,
                     bool elementwise_affine = true,
                     bool bias = true);
  /// Over the last dimension, of `size`.
  explicit LayerNorm(std::int64_t size) : LayerNorm(Shape{size}) {}

  /// Errors: those of accrue::layer_norm.
  Variable forward(const Variable& x) override;

  Variable weight() const { return weight_; }  ///< undefined without elementwise_affine
  Variable bias() const { return bias_; }      ///< undefined without a bias

 private:
  std::string options_str() const override;

  Shape normalized_shape_;
  double eps_;
  Variable weight_;
  Variable bias_;
};

/// x / sqrt(mean(x^2) + eps) * weight over the last dimensions.
///
/// Shapes, window: as LayerNorm. Init: weight 1, the only parameter.
/// eps:     without a value as accrue::rms_norm.
class RMSNorm final : public Layer {
 public:
  /// Errors: ValueError for a shape without dimensions.
  explicit RMSNorm(const Shape& normalized_shape,
                   std::optional<double> eps = std::nullopt,
                   bool elementwise_affine = true);
  explicit RMSNorm(std::int64_t size) : RMSNorm(Shape{size}) {}

  /// Errors: those of accrue::rms_norm.
  Variable forward(const Variable& x) override;

  Variable weight() const { return weight_; }  ///< undefined without elementwise_affine

 private:
  std::string options_str() const override;

  Shape normalized_shape_;
  std::optional<double> eps_;
  Variable weight_;
};

}  // namespace accrue::nn
