// Elementwise functions of one operand. The sample dimension is kept.
#pragma once

#include "accrue/autograd/variable.h"

namespace accrue {

// Errors of all functions here: DTypeError unless float32 or float64; others where said. Numbers
// are first rounded to the dtype of x. The bounds in ulp hold for float32.

/// max(x, 0). relu(NaN) = NaN, relu(-0) = -0. Grad: dy where x > 0 or NaN, else 0 (at 0 too).
Variable relu(const Variable& x);
/// x, or negative_slope * x below 0. Grad: dy where x > 0, else negative_slope * dy.
Variable leaky_relu(const Variable& x, double negative_slope = 0.01);
/// e^x, at most 1.02 ulp. Grad: dy * y.
Variable exp(const Variable& x);
/// Natural logarithm, at most 0.91 ulp; -inf at 0, NaN below. Grad: dy / x.
Variable log(const Variable& x);
/// -x. Grad: -dy.
Variable neg(const Variable& x);
/// At most 1.47 ulp. Grad: dy * (1 - y^2).
Variable tanh(const Variable& x);
/// 1 / (1 + e^-x), at most 1 ulp. Grad: dy * ((1 - y) * y).
Variable sigmoid(const Variable& x);
/// x * sigmoid(x), at most 1.1 ulp. silu(-inf) = -0 with gradient 0 (NaN in torch).
Variable silu(const Variable& x);
/// x * Phi(x) with the normal distribution function Phi, at most 1.9 ulp; so torch's gelu without
/// its cancellation below 0. gelu(-inf) = -0 with gradient 0 (NaN in torch).
Variable gelu(const Variable& x);
/// The approximation of gelu by tanh, x * sigmoid(sqrt(8 / pi) (x + 0.044715 x^3)), at most 1.3
/// ulp. Otherwise as gelu().
Variable gelu_tanh(const Variable& x);
/// Rounded correctly; sqrt(-0) = -0, NaN below 0. Grad: dy / (2 y), infinite at 0.
Variable sqrt(const Variable& x);
/// |x|. Grad: dy with the sign of x, 0 at 0 and at NaN.
Variable abs(const Variable& x);
/// x within [low, high]; NaN stays NaN. Grad: dy where low <= x <= high, else 0.
/// Errors also: ValueError for a NaN bound or low > high (torch: high everywhere).
Variable clamp(const Variable& x, double low, double high);
/// x^exponent as IEEE pow, at most 0.51 ulp; exact where a float holds the result and the exponent
/// is whole and at most 64 in size. x^0 = 1, for NaN too. Grad: dy * (exponent * x^(exponent - 1)),
/// 0 for x^0.
Variable pow(const Variable& x, double exponent);
/// x rounded to bfloat16 or float16, in its own dtype: 1.001 becomes 1. Grad: dy rounded likewise.
/// Errors also: ValueError for another dtype.
Variable round_to(const Variable& x, DType dtype);

inline Variable operator-(const Variable& x) { return neg(x); }

}  // namespace accrue
