// Comparisons, and the choice between two tensors that a condition makes.
#pragma once

#include "accrue/autograd/variable.h"

namespace accrue {

/// a == b, a != b, a < b, a <= b, a > b, a >= b element by element, as a bool tensor without
/// gradient. With NaN only ne() is true.
///
/// Shapes:  broadcast as in torch. Any dtype, the same for both.
/// Window:  samples must be the same dimension of both operands.
/// Errors:  ShapeError, DTypeError; StateError in a window.
Tensor eq(const Variable& a, const Variable& b);
Tensor ne(const Variable& a, const Variable& b);
Tensor lt(const Variable& a, const Variable& b);
Tensor le(const Variable& a, const Variable& b);
Tensor gt(const Variable& a, const Variable& b);
Tensor ge(const Variable& a, const Variable& b);

/// The same with a number, which is first rounded to a floating dtype.
/// Errors:  ValueError when an integer dtype does not hold the number.
Tensor eq(const Variable& a, double b);
Tensor ne(const Variable& a, double b);
Tensor lt(const Variable& a, double b);
Tensor le(const Variable& a, double b);
Tensor gt(const Variable& a, double b);
Tensor ge(const Variable& a, double b);

/// condition ? a : b element by element, bit for bit.
///
/// Shapes:  broadcast as in torch; the condition is bool, a and b have one dtype.
/// Grad:    dy where an operand was chosen, +0 elsewhere, whatever the operand is there. Yet what
///          computed that operand may turn the 0 into NaN: where(gt(x, 0), sqrt(x), x) has the
///          gradient 0 * inf at x = 0. Make the operand harmless first: sqrt(where(gt(x, 0), x,
///          one)).
/// Window:  as a + b.
/// Errors:  ShapeError, DTypeError; StateError in a window.
Variable where(const Tensor& condition, const Variable& a, const Variable& b);

}  // namespace accrue
