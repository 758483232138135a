// Elementwise functions of one operand. The sample dimension is kept.
#pragma once

#include "accrue/autograd/variable.h"

namespace accrue {

/// max(x, 0). relu(NaN) = NaN, relu(-0) = -0. Grad: dy where x > 0 or NaN, else 0 (at 0 too).
/// Errors of all functions here: DTypeError unless float32 or float64.
Variable relu(const Variable& x);
/// e^x, at most 1.02 ulp. Grad: dy * y.
Variable exp(const Variable& x);
/// Natural logarithm, at most 0.91 ulp; -inf at 0, NaN below. Grad: dy / x.
Variable log(const Variable& x);
/// -x. Grad: -dy.
Variable neg(const Variable& x);

inline Variable operator-(const Variable& x) { return neg(x); }

}  // namespace accrue
