// exp: e^x in explicit IEEE operations, so every device and vector width gives the same bits.
#pragma once

#include "accrue/core/host_device.h"
#include "accrue/kernels/scalar/float_ops.h"

#include <cmath>
#include <cstdint>

namespace accrue::kernels::scalar {

/// e^(x + low) as (p + p_low) * first * second, p_low being what rounding left of p: factors may
/// come between, so that a subnormal result rounds once.
struct ExpFactors {
  float p, p_low, first, second;
};

/// x = k * ln 2 + r with |r| <= ln 2 / 2; e^r is a polynomial; 2^k comes in two halves.
/// `low` is what rounding left of x; -0 changes nothing.
ACCRUE_HD ExpFactors exp_factors(float x, float low = -0.0f) {
  // Beyond these ends the result is inf or 0 already; k must fit two exponents. NaN stays NaN.
  x = select(x > 89.0f, 89.0f, x);
  x = select(x < -150.0f, -150.0f, x);
  constexpr float kRound = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
  const float shifted = fma(x, 0x1.715476p+0f, kRound);
  const float k = shifted - kRound;
  const std::int32_t n = static_cast<std::int32_t>(bits_of(shifted) - bits_of(kRound));
  float r = fma(k, -0x1.62e4p-1f, x);
  r = fma(k, -0x1.7f7d1cp-20f, r) + low;
  float q = 0x1.6a628ep-10f;
  q = fma(q, r, 0x1.123ac8p-7f);
  q = fma(q, r, 0x1.55589ep-5f);
  q = fma(q, r, 0x1.55549p-3f);
  q = fma(q, r, 0x1.fffffcp-2f);
  const std::int32_t half = n >> 1;
  const float grown = fma(r * r, q, r), p = grown + 1.0f;
  return {p, grown - (p - 1.0f), power_of_two(half), power_of_two(n - half)};
}

/// e^x, at most 1.02 ulp off.
///
/// exp(NaN) = NaN, exp(+inf) = +inf, exp(-inf) = +0, exp(+-0) = 1; overflow to +inf from
/// 88.722839, underflow through the subnormals to +0.
ACCRUE_HD float exp(float x) {
  const ExpFactors e = exp_factors(x);
  return e.p * e.first * e.second;
}

/// The C library's; for gradient checks, outside the contract.
ACCRUE_HD double exp(double x) { return std::exp(x); }

}  // namespace accrue::kernels::scalar
