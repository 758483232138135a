// Activation layers: elementwise functions and softmax as modules without parameters.
#pragma once

#include "accrue/autograd/ops/softmax.h"
#include "accrue/autograd/ops/unary.h"
#include "accrue/core/error.h"
#include "accrue/nn/layer.h"

namespace accrue::nn {

/// max(x, 0) for each element, as accrue::relu.
class ReLU final : public Layer {
 public:
  Variable forward(const Variable& x) override { return relu(x); }
};

/// x where it is positive, else negative_slope * x, as accrue::leaky_relu.
class LeakyReLU final : public Layer {
 public:
  explicit LeakyReLU(double negative_slope = 0.01) : negative_slope_(negative_slope) {}
  Variable forward(const Variable& x) override { return leaky_relu(x, negative_slope_); }

 private:
  std::string options_str() const override { return text("negative_slope=", negative_slope_); }

  double negative_slope_;
};

/// How GELU computes the normal distribution function.
enum class GeluForm : unsigned char { none, tanh };

/// accrue::gelu, or accrue::gelu_tanh.
class GELU final : public Layer {
 public:
  explicit GELU(GeluForm approximate = GeluForm::none) : approximate_(approximate) {}
  Variable forward(const Variable& x) override {
    return approximate_ == GeluForm::tanh ? gelu_tanh(x) : gelu(x);
  }

 private:
  std::string options_str() const override {
    return text("approximate=", approximate_ == GeluForm::tanh ? "'tanh'" : "'none'");
  }

  GeluForm approximate_;
};

/// accrue::tanh.
class Tanh final : public Layer {
 public:
  Variable forward(const Variable& x) override { return tanh(x); }
};

/// accrue::sigmoid.
class Sigmoid final : public Layer {
 public:
  Variable forward(const Variable& x) override { return sigmoid(x); }
};

/// accrue::silu.
class SiLU final : public Layer {
 public:
  Variable forward(const Variable& x) override { return silu(x); }
};

/// accrue::softmax along `dim`.
class Softmax final : public Layer {
 public:
  explicit Softmax(int dim = -1) : dim_(dim) {}
  Variable forward(const Variable& x) override { return softmax(x, dim_); }

 private:
  std::string options_str() const override { return text("dim=", dim_); }

  int dim_;
};

/// accrue::log_softmax along `dim`.
class LogSoftmax final : public Layer {
 public:
  explicit LogSoftmax(int dim = -1) : dim_(dim) {}
  Variable forward(const Variable& x) override { return log_softmax(x, dim_); }

 private:
  std::string options_str() const override { return text("dim=", dim_); }

  int dim_;
};

}  // namespace accrue::nn
