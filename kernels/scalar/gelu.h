// gelu: x times the normal distribution function, and its slope.
#pragma once

#include "accrue/core/host_device.h"
#include "accrue/kernels/scalar/exp.h"
#include "accrue/kernels/scalar/float_ops.h"

#include <cmath>

namespace accrue::kernels::scalar {

/// a / b with both given as a rounded number and what the rounding left.
ACCRUE_HD float divide(float a, float a_low, float b, float b_low) {
  const float inverse = 1.0f / b, y = a * inverse;
  return fma(fma(-y, b, a) + a_low - y * b_low, inverse, y);
}

/// A number as a sum of two floats; the second is small.
struct FloatPair {
  float high, low;
};

/// (a + 2) Phi(-a) e^(a^2 / 2) for 0 <= a <= 15, with the normal distribution function Phi: a
/// polynomial in q = (a - 4) / (a + 4). The rounding error of q is made good by the slope.
ACCRUE_HD FloatPair normal_tail_ratio(float a) {
  const float above = a - 4.0f, below = a + 4.0f;
  const float above_low = a - (above + 4.0f), below_low = a - (below - 4.0f);
  const float inverse = 1.0f / below, q = above * inverse;
  const float q_low = (fma(-q, below, above) + above_low - q * below_low) * inverse;
  float p = -0x1.128d82p-14f;
  p = fma(p, q, -0x1.f2b57ap-14f);
  p = fma(p, q, 0x1.0fc434p-11f);
  p = fma(p, q, 0x1.6b5f9ap-12f);
  p = fma(p, q, -0x1.26d65p-8f);
  p = fma(p, q, 0x1.357e24p-7f);
  p = fma(p, q, -0x1.5d4acep-10f);
  p = fma(p, q, -0x1.612228p-5f);
  p = fma(p, q, 0x1.1b666p-3f);
  p = fma(p, q, -0x1.1182fap-2f);
  const float slope = fma(fma(-0.129f, q, 0.277f), q, -0.267f);
  constexpr float kConstant = 0x1.22078cp-1f;
  const float high = fma(p, q, kConstant);
  return {high, fma(p, q, kConstant - high) + slope * q_low};
}

/// factor * Phi(-a), for 0 <= a <= 15 or NaN.
ACCRUE_HD float times_normal_tail(float factor, float a) {
  const float square = a * a;
  const ExpFactors e = exp_factors(-0.5f * square, -0.5f * fma(a, a, -square));
  const FloatPair ratio = normal_tail_ratio(a);
  const float n = factor * ratio.high;
  const float n_low = fma(factor, ratio.high, -n) + factor * ratio.low;
  const float product = n * e.p;
  const float product_low = fma(n, e.p, -product) + fma(n_low, e.p, n * e.p_low);
  const float divisor = a + 2.0f;
  const float y = divide(product, product_low, divisor, a - (divisor - 2.0f));
  return y * e.first * e.second;
}

/// Phi(x) - 1/2 for |x| < 0.5, by an odd polynomial.
ACCRUE_HD float normal_centre(float x) {
  const float z = x * x;
  float p = 0x1.b3805cp-14f;
  p = fma(p, z, -0x1.35e39cp-10f);
  p = fma(p, z, 0x1.46c834p-7f);
  p = fma(p, z, -0x1.105826p-4f);
  p = fma(p, z, 0x1.988454p-2f);
  return x * p;
}

/// x * Phi(x) with the normal distribution function Phi, at most 1.9 ulp off; -0 at -inf.
ACCRUE_HD float gelu(float x) {
  const float a = select(absolute(x) > 15.0f, 15.0f, absolute(x));  // the tail is 0 there
  const float tail = times_normal_tail(select(x < 0.0f, -a, 1.0f), a);
  const float outside = select(x < 0.0f, tail, x * (1.0f - tail));
  return select(a < 0.5f, x * (0.5f + normal_centre(x)), outside);
}
ACCRUE_HD double gelu(double x) {
  return 0.5 * (x < -1000 ? -1000 : x) * std::erfc(-x * 0.70710678118654752440);
}

inline constexpr double kNormalPeak = 0.3989422804014327;  ///< 1 / sqrt(2 pi)

/// The derivative of gelu: Phi(x) + x e^(-x^2 / 2) / sqrt(2 pi); 0 at -inf, 1 at +inf.
ACCRUE_HD float gelu_slope(float x) {
  const float a = select(absolute(x) > 15.0f, 15.0f, absolute(x));
  const float tail = times_normal_tail(1.0f, a);
  const float outside = select(x < 0.0f, tail, 1.0f - tail);
  const float distribution = select(a < 0.5f, 0.5f + normal_centre(x), outside);
  const float bounded = with_sign_of(a, x);
  return fma(static_cast<float>(kNormalPeak) * bounded, exp(-0.5f * (a * a)), distribution);
}
ACCRUE_HD double gelu_slope(double x) {
  const double density = kNormalPeak * std::exp(-0.5 * x * x);
  const double bounded = x > 1e3 ? 1e3 : x < -1e3 ? -1e3 : x;
  return 0.5 * std::erfc(-x * 0.70710678118654752440) + bounded * density;
}

}  // namespace accrue::kernels::scalar
