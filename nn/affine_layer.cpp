#include "accrue/nn/affine_layer.h"

#include "accrue/core/error.h"
#include "accrue/nn/init.h"

#include <cmath>

namespace accrue::nn {

void AffineLayer::make_parameters(const Shape& shape, bool bias, Generator& generator) {
  const std::int64_t fan_in = product(shape, 1, shape.rank());
  Tensor weight = Tensor::empty(shape);
  init::uniform(weight, init::kaiming_uniform_bound(fan_in, std::sqrt(5.0)), generator);
  weight_ = register_parameter("weight", weight);
  if (!bias) return;
  Tensor offsets = Tensor::empty({shape[0]});
  init::uniform(
      offsets, fan_in > 0 ? 1.0 / std::sqrt(static_cast<double>(fan_in)) : 0.0, generator);
  bias_ = register_parameter("bias", offsets);
}

void AffineLayer::adopt_parameters(
    const char* layer, const char* form, int rank, const Variable& weight, const Variable& bias) {
  ACCRUE_CHECK(weight.rank() == rank && (!bias.defined() || bias.shape() == Shape{weight.size(0)}),
               ShapeError,
               layer,
               "weight must be ",
               form,
               " and bias [out], got ",
               weight.shape(),
               " and ",
               bias.defined() ? bias.shape().str() : "no bias");
  ACCRUE_CHECK(!bias.defined() || bias.dtype() == weight.dtype(),
               DTypeError,
               layer,
               "weight and bias must have one dtype, got ",
               weight.dtype(),
               " and ",
               bias.dtype());
  weight_ = register_parameter("weight", weight);
  if (bias.defined()) bias_ = register_parameter("bias", bias);
}

}  // namespace accrue::nn
