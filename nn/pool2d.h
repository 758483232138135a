// MaxPool2d and AvgPool2d: pooling layers.
#pragma once

#include "accrue/autograd/ops/pool2d.h"
#include "accrue/nn/layer.h"

namespace accrue::nn {

/// The largest element of each window. No parameters.
///
/// Shapes, order, window: as accrue::max_pool2d.
class MaxPool2d final : public Layer {
 public:
  explicit MaxPool2d(Size2 kernel_size, const MaxPool2dOptions& options = {})
      : kernel_size_(kernel_size), options_(options) {}

  /// Errors: those of accrue::max_pool2d, also for options out of range.
  Variable forward(const Variable& x) override { return max_pool2d(x, kernel_size_, options_); }

 private:
  std::string options_str() const override;

  Size2 kernel_size_;
  MaxPool2dOptions options_;
};

/// The mean of each window. No parameters.
///
/// Shapes, order, window: as accrue::avg_pool2d.
class AvgPool2d final : public Layer {
 public:
  explicit AvgPool2d(Size2 kernel_size, const AvgPool2dOptions& options = {})
      : kernel_size_(kernel_size), options_(options) {}

  /// Errors: those of accrue::avg_pool2d, also for options out of range.
  Variable forward(const Variable& x) override { return avg_pool2d(x, kernel_size_, options_); }

 private:
  std::string options_str() const override;

  Size2 kernel_size_;
  AvgPool2dOptions options_;
};

}  // namespace accrue::nn
