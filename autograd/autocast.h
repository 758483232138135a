// Autocast: where products take bfloat16 or float16 operands, as under torch.autocast.
#pragma once

#include "accrue/autograd/variable.h"

#include <optional>

namespace accrue {

/// While it lives, products of this thread have half precision: linear, conv2d, matmul and
/// scaled_dot_product_attention round their float32 operands to `dtype`, add up in float32 and
/// round the result; linear_cross_entropy so rounds its logits. All else, softmax and losses too,
/// stays float32. float64 stays as it is. Scopes nest; one that is not `enabled` switches it off.
///
/// Values are held in float32 tensors. Gradients are rounded where torch holds them in `dtype`:
/// that of a result on its way in, that of an operand on its way out. Gradients of weights and
/// biases are not: their rows chain in float32 (docs/numerics.md 20), so no split changes the bits.
///
///     const Autocast scope(DType::bfloat16);
///     const Variable logits = model(inputs);  // backward() may lie outside
///
/// Errors:  ValueError unless dtype is bfloat16 or float16.
class Autocast {
 public:
  explicit Autocast(DType dtype, bool enabled = true);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  std::optional<DType> previous_;
};

/// The dtype of the innermost scope on this thread; none outside, and where it is switched off.
std::optional<DType> autocast_dtype();

// ---- for operations ----

/// `x` as a product sees it: rounded if it is float32. Its gradient is rounded too.
Variable autocast_operand(const Variable& x, DType dtype);
/// The same of a weight or bias, whose gradient passes as it is: the rows go to the parameter.
Variable autocast_weight(const Variable& w, DType dtype);

}  // namespace accrue
