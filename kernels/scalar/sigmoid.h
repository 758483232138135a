// sigmoid, and silu and the tanh form of gelu, which are x * sigmoid(w); with their slopes.
//
// An exponential is never larger than 1, so nothing overflows, and it is scaled last, so a
// subnormal result rounds once.
#pragma once

#include "accrue/core/host_device.h"
#include "accrue/kernels/scalar/exp.h"
#include "accrue/kernels/scalar/float_ops.h"

#include <cmath>

namespace accrue::kernels::scalar {

/// x / (1 + e^-w) for the exponential `e` = e^-|w| of a w with the sign `is_negative`, which x need
/// not have. Roundings on the way are made good at the end. Needs |x| <= 1000.
ACCRUE_HD float times_sigmoid(float x, bool is_negative, ExpFactors e) {
  const float scale = e.first * e.second, t = e.p * e.first * e.second;
  const float divisor = 1.0f + t;
  const float divisor_low = (1.0f - divisor) + t + e.p_low * scale;
  const float p = select(is_negative, e.p, 1.0f), p_low = select(is_negative, e.p_low, 0.0f);
  const float inverse = 1.0f / divisor;
  const float product = x * p, product_low = fma(x, p, -product) + x * p_low;
  const float y = product * inverse;
  const float rest = fma(-y, divisor, product) + product_low - y * divisor_low;
  const float better = fma(rest, inverse, y);
  return select(is_negative, better * e.first * e.second, better);
}

/// 1 / (1 + e^-x), at most 1 ulp off.
///
/// sigmoid(NaN) = NaN, sigmoid(+inf) = 1, sigmoid(-inf) = +0, sigmoid(+-0) = 0.5.
ACCRUE_HD float sigmoid(float x) {
  return times_sigmoid(1.0f, x < 0.0f, exp_factors(-absolute(x)));
}
ACCRUE_HD double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

/// x within [-1000, 1000]: sigmoids are 0 or 1 beyond. NaN stays NaN.
template <class T>
ACCRUE_HD T bounded(T x) {
  x = x > T(1000) ? T(1000) : x;
  return x < T(-1000) ? T(-1000) : x;
}

/// x * sigmoid(x), at most 1.1 ulp off; silu(-inf) = -0.
ACCRUE_HD float silu(float x) {
  const float y = times_sigmoid(bounded(x), x < 0.0f, exp_factors(-absolute(x)));
  return with_sign_of(select(x > 1000.0f, x, y), x);
}
ACCRUE_HD double silu(double x) { return (x > 0 ? x : bounded(x)) / (1.0 + std::exp(-x)); }

/// The derivative of silu: s + x s (1 - s) with s = sigmoid(x); 0 at -inf, 1 at +inf.
template <class T>
ACCRUE_HD T silu_slope(T x) {
  const T rest = sigmoid(-x);
  return sigmoid(x) * fma(bounded(x), rest, T(1));
}

/// w = sqrt(8 / pi) (x + 0.044715 x^3) has these factors, as floats with what rounding left.
inline constexpr double kGeluLinear = 1.5957691216057308, kGeluCubic = 0.07135481627260025;

/// e^-|w|. w is computed with its rounding errors, which the exponential would multiply by |w|.
ACCRUE_HD ExpFactors gelu_tanh_exponential(float x) {
  constexpr auto kLinear = static_cast<float>(kGeluLinear);
  constexpr auto kLinearLow = static_cast<float>(kGeluLinear - kLinear);
  constexpr auto kCubic = static_cast<float>(kGeluCubic);
  constexpr auto kCubicLow = static_cast<float>(kGeluCubic - kCubic);
  const float a = select(absolute(x) > 13.0f, 13.0f, absolute(x));  // the exponential is 0 there
  const float square = a * a, square_low = fma(a, a, -square);
  const float cubic = kCubic * square;
  const float sum = kLinear + cubic, back = sum - kLinear;
  float low = (kLinear - (sum - back)) + (cubic - back);
  low += fma(kCubic, square, -cubic) + fma(kCubic, square_low, fma(kCubicLow, square, kLinearLow));
  const float w = a * sum;
  const float w_low = fma(a, low, fma(a, sum, -w));
  return exp_factors(-w, -w_low);
}

/// gelu with tanh: x * sigmoid(w), at most 1.3 ulp off; -0 at -inf.
ACCRUE_HD float gelu_tanh(float x) {
  const float y = times_sigmoid(bounded(x), x < 0.0f, gelu_tanh_exponential(x));
  return with_sign_of(select(x > 1000.0f, x, y), x);
}
ACCRUE_HD double gelu_tanh(double x) {
  return (x > 0 ? x : bounded(x)) / (1.0 + std::exp(-x * (kGeluLinear + kGeluCubic * x * x)));
}

/// The derivative of gelu_tanh: s + x s (1 - s) w' with s = sigmoid(w); 0 at -inf, 1 at +inf.
template <class T>
ACCRUE_HD T gelu_tanh_slope(T x) {
  T a = x > T(13) ? T(13) : x;  // s is 0 or 1 beyond
  a = a < T(-13) ? T(-13) : a;
  const T square = a * a;
  const T w = a * fma(T(kGeluCubic), square, T(kGeluLinear));
  const T slope = a * fma(T(3 * kGeluCubic), square, T(kGeluLinear));
  return sigmoid(w) * fma(slope, sigmoid(-w), T(1));
}

}  // namespace accrue::kernels::scalar
