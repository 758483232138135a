// Elementwise arithmetic, maximum and minimum, with broadcasting.
#pragma once

#include "accrue/autograd/variable.h"

namespace accrue {

/// a + b, a - b, a * b, a / b element by element, each rounded once.
///
/// Shapes:  broadcast as in torch; the result has the broadcast shape.
/// Grad:    an operand that was stretched sums its gradient: a parameter over rows, lane by lane,
///          as acc = fma(dy, factor, acc); another variable in the order of sum().
/// Window:  samples must be the same dimension of both operands; an operand that needs a gradient
///          and is stretched along the samples must be a parameter.
/// Errors:  ShapeError, DTypeError (no promotion: convert with to()); StateError in a window.
Variable operator+(const Variable& a, const Variable& b);
Variable operator-(const Variable& a, const Variable& b);
Variable operator*(const Variable& a, const Variable& b);
Variable operator/(const Variable& a, const Variable& b);

/// The larger or the smaller of a and b; a where they are equal, NaN where one is NaN.
///
/// Grad:    dy to the larger (the smaller), dy / 2 to both where they are equal, dy to both where
///          one is NaN, as in torch.
/// Otherwise as a + b.
Variable maximum(const Variable& a, const Variable& b);
Variable minimum(const Variable& a, const Variable& b);

/// Arithmetic with a number, which is first rounded to the dtype of the variable.
Variable operator+(const Variable& a, double b);
Variable operator-(const Variable& a, double b);
Variable operator*(const Variable& a, double b);
Variable operator/(const Variable& a, double b);
inline Variable operator+(double a, const Variable& b) { return b + a; }
inline Variable operator*(double a, const Variable& b) { return b * a; }

}  // namespace accrue
