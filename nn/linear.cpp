#include "accrue/nn/linear.h"

#include "accrue/autograd/ops/linear.h"
#include "accrue/core/error.h"
#include "accrue/nn/init.h"

#include <cmath>

namespace accrue::nn {

Linear::Linear(std::int64_t in, std::int64_t out, bool bias, Generator& generator) {
  ACCRUE_CHECK(in >= 0 && out >= 0,
               ValueError,
               "Linear",
               "sizes must be >= 0, got in ",
               in,
               " and out ",
               out);
  Tensor weight = Tensor::empty({out, in});
  init::uniform(weight, init::kaiming_uniform_bound(in, std::sqrt(5.0)), generator);
  weight_ = register_parameter("weight", weight);
  if (!bias) return;
  Tensor offsets = Tensor::empty({out});
  init::uniform(offsets, in > 0 ? 1.0 / std::sqrt(static_cast<double>(in)) : 0.0, generator);
  bias_ = register_parameter("bias", offsets);
}

Linear::Linear(const Variable& weight, const Variable& bias) {
  ACCRUE_CHECK(weight.rank() == 2 && (!bias.defined() || bias.shape() == Shape{weight.shape()[0]}),
               ShapeError,
               "Linear",
               "weight must be [out, in] and bias [out], got ",
               weight.shape(),
               " and ",
               bias.defined() ? bias.shape().str() : "no bias");
  ACCRUE_CHECK(!bias.defined() || bias.dtype() == weight.dtype(),
               DTypeError,
               "Linear",
               "weight and bias must have one dtype, got ",
               weight.dtype(),
               " and ",
               bias.dtype());
  weight_ = register_parameter("weight", weight);
  if (bias.defined()) bias_ = register_parameter("bias", bias);
}

Variable Linear::forward(const Variable& x) { return linear(x, weight_, bias_); }

std::string Linear::options_str() const {
  return text("in_features=",
              in_features(),
              ", out_features=",
              out_features(),
              ", bias=",
              bias_.defined() ? "True" : "False");
}

}  // namespace accrue::nn
