// Flatten: the layer between images and linear layers.
#pragma once

#include "accrue/autograd/ops/views.h"
#include "accrue/nn/layer.h"

namespace accrue::nn {

/// Merges dimensions [start, end] into one; by default all but the first, which counts samples.
class Flatten final : public Layer {
 public:
  explicit Flatten(int start = 1, int end = -1) : start_(start), end_(end) {}

  /// Errors: IndexError for dimensions that x does not have.
  Variable forward(const Variable& x) override { return flatten(x, start_, end_); }

 private:
  std::string options_str() const override {
    return text("start_dim=", start_, ", end_dim=", end_);
  }

  int start_;
  int end_;
};

}  // namespace accrue::nn
