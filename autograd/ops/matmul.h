// Matrix products.
#pragma once

#include "accrue/autograd/variable.h"

namespace accrue {

/// c = a b, for each index of the leading dimensions, which broadcast.
///
/// Shapes:  a [..., M, K], b [..., K, N], result [..., M, N]. K = 0 gives +0.
/// Order:   per output one chain over K ascending from +0; the gradients likewise over N and M,
/// then
///          sum() over leading dimensions that were stretched.
/// Window:  samples lie in a leading dimension of both or one operand, or in the rows of a. No
///          operand may be a parameter: use linear().
/// Errors:  ShapeError, DTypeError; StateError in a window.
Variable matmul(const Variable& a, const Variable& b);

}  // namespace accrue
