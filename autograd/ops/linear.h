// Linear layers.
#pragma once

#include "accrue/autograd/variable.h"

namespace accrue {

/// y = x w^T + bias, the affine map of a layer.
///
/// Shapes:  x [..., I], w [O, I], bias [O] or undefined, result [..., O].
/// Order:   per output one chain over I ascending from +0, bias added last. Gradient of x: one
///          chain over O. Gradients of w and bias: rows in order, lane by lane (docs/numerics.md
///          5).
/// Window:  x must be sample-major, w and bias parameters.
/// Errors:  ShapeError, DTypeError; StateError in a window.
Variable linear(const Variable& x, const Variable& w, const Variable& bias = {});

}  // namespace accrue
