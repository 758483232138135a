// Linear layers and matrix products.
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

/// c = a b.
///
/// Shapes:  a [M, K], b [K, N], result [M, N]. K = 0 gives +0.
/// Order:   per output one chain over K ascending from +0; the gradients likewise over N and M.
/// Window:  b must not depend on samples, and no operand may be a parameter: use linear().
/// Errors:  ShapeError, DTypeError; StateError in a window.
Variable matmul(const Variable& a, const Variable& b);

}  // namespace accrue
