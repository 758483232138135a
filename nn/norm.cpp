#include "accrue/nn/norm.h"

#include "accrue/autograd/ops/layer_norm.h"
#include "accrue/core/error.h"

namespace accrue::nn {
namespace {

void check_shape(const char* layer, const Shape& shape) {
  ACCRUE_CHECK(shape.rank() >= 1,
               ValueError,
               layer,
               "normalized_shape must have a dimension, got ",
               shape,
               "; pass the size of the last one");
}

/// The shape as a Python tuple.
std::string tuple(const Shape& shape) {
  std::string out = "(";
  for (int d = 0; d < shape.rank(); ++d) out += text(d > 0 ? ", " : "", shape[d]);
  return out + (shape.rank() == 1 ? ",)" : ")");
}

}  // namespace

LayerNorm::LayerNorm(const Shape& normalized_shape, double eps, bool elementwise_affine, bool bias)
    : normalized_shape_(normalized_shape), eps_(eps) {
  check_shape("LayerNorm", normalized_shape);
  if (!elementwise_affine) return;
  weight_ = register_parameter("weight", Tensor::ones(normalized_shape));
  if (bias) bias_ = register_parameter("bias", Tensor::zeros(normalized_shape));
}

Variable LayerNorm::forward(const Variable& x) {
  return layer_norm(x, normalized_shape_, weight_, bias_, eps_);
}

std::string LayerNorm::options_str() const {
  const char* affine = weight_.defined() ? "True" : "False";
  return text(tuple(normalized_shape_), ", eps=", eps_, ", elementwise_affine=", affine);
}

RMSNorm::RMSNorm(const Shape& normalized_shape, std::optional<double> eps, bool elementwise_affine)
    : normalized_shape_(normalized_shape), eps_(eps) {
  check_shape("RMSNorm", normalized_shape);
  if (elementwise_affine) weight_ = register_parameter("weight", Tensor::ones(normalized_shape));
}

Variable RMSNorm::forward(const Variable& x) {
  return rms_norm(x, normalized_shape_, weight_, eps_);
}

std::string RMSNorm::options_str() const {
  const char* affine = weight_.defined() ? "True" : "False";
  const std::string eps = eps_ ? text(*eps_) : "None";
  return text(tuple(normalized_shape_), ", eps=", eps, ", elementwise_affine=", affine);
}

}  // namespace accrue::nn
