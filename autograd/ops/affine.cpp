#include "accrue/autograd/ops/affine.h"

#include "accrue/autograd/grad_mode.h"
#include "accrue/autograd/window.h"
#include "accrue/core/same_device.h"

namespace accrue {

void check_affine_dtypes(const char* operation,
                         const Variable& x,
                         const Variable& w,
                         const Variable& bias) {
  const DType bias_dtype = bias.defined() ? bias.dtype() : w.dtype();
  ACCRUE_CHECK(x.dtype() == w.dtype() && bias_dtype == w.dtype(),
               DTypeError,
               operation,
               "input, weight and bias must have one dtype, got ",
               x.dtype(),
               ", ",
               w.dtype(),
               " and ",
               bias_dtype,
               "; convert with to()");
  common_device(operation, x.value(), w.value(), bias.value());
}

void check_linear(const char* operation,
                  const Variable& x,
                  const Variable& w,
                  const Variable& bias) {
  ACCRUE_CHECK(w.rank() == 2, ShapeError, operation, "weight must be [O, I], got ", w.shape());
  ACCRUE_CHECK(x.rank() >= 1 && x.shape().back() == w.shape()[1],
               ShapeError,
               operation,
               "input must be [..., ",
               w.shape()[1],
               "] for weight ",
               w.shape(),
               ", got ",
               x.shape(),
               "; check in_features");
  ACCRUE_CHECK(!bias.defined() || bias.shape() == Shape{w.shape()[0]},
               ShapeError,
               operation,
               "bias must be [",
               w.shape()[0],
               "] for weight ",
               w.shape(),
               ", got ",
               bias.shape());
  check_affine_dtypes(operation, x, w, bias);
}

std::int64_t affine_rows(const char* operation,
                         const Variable& x,
                         int inner_dims,
                         const Variable& w,
                         const Variable& bias) {
  const bool wants_rows = grad_enabled() && (w.requires_grad() || bias.requires_grad());
  if (!wants_rows || !MicroBatch::current()) return 1;
  ACCRUE_CHECK((!w.requires_grad() || w.is_leaf()) && (!bias.requires_grad() || bias.is_leaf()),
               StateError,
               operation,
               "weight and bias must be parameters in a window, got the result of an operation; "
               "use invariant = false");
  return rows_per_sample(x.value(), inner_dims, operation, "the input of a parameter");
}

SampleAxis affine_axis(SampleAxis axis, const Variable& w, const Variable& bias) {
  const auto has_samples = [](const Variable& v) {
    const bool is_parameter = v.node() && v.node()->as_leaf();
    return v.value().sample_axis().known() && !is_parameter;
  };
  return has_samples(w) || has_samples(bias) ? SampleAxis::mixed() : axis;
}

}  // namespace accrue
