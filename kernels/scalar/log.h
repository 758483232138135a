// log: natural logarithm in explicit IEEE operations.
#pragma once

#include "accrue/core/host_device.h"
#include "accrue/kernels/scalar/float_ops.h"

#include <cmath>
#include <cstdint>

namespace accrue::kernels::scalar {

/// ln x, at most 0.91 ulp off.
///
/// log(+-0) = -inf, log(x < 0) = NaN, log(+inf) = +inf, log(NaN) = NaN, log(1) = +0.
/// x = m * 2^k with m in [sqrt(1/2), sqrt(2)); ln m is a polynomial in m - 1.
ACCRUE_HD float log(float x) {
  const bool subnormal = x < 0x1p-126f;
  const float scaled = select(subnormal, x * 0x1p24f, x);
  const std::uint32_t bits = bits_of(scaled);
  const std::int32_t n = static_cast<std::int32_t>(bits - 0x3f3504f3U) >> 23;
  const float f = float_of(bits - (static_cast<std::uint32_t>(n) << 23)) - 1.0f;
  const float k = static_cast<float>(n) - select(subnormal, 24.0f, 0.0f);
  float q = -0x1.383bf4p-4f;
  q = fma(q, f, 0x1.085f98p-3f);
  q = fma(q, f, -0x1.0f4112p-3f);
  q = fma(q, f, 0x1.226e5p-3f);
  q = fma(q, f, -0x1.5425b2p-3f);
  q = fma(q, f, 0x1.99a416p-3f);
  q = fma(q, f, -0x1.000432p-2f);
  q = fma(q, f, 0x1.55555p-2f);
  q = fma(q, f, -0x1.fffff8p-2f);
  const float tail = fma(k, 0x1.7f7d1cp-20f, f * f * q);
  float y = fma(k, 0x1.62e4p-1f, f + tail);
  constexpr float kInf = __builtin_huge_valf();
  y = select(x < kInf, y, x);  // +inf and NaN are their own logarithms
  y = select(x < 0.0f, __builtin_nanf(""), y);
  return select(x == 0.0f, -kInf, y);
}

/// The C library's; for gradient checks, outside the contract.
ACCRUE_HD double log(double x) { return std::log(x); }

}  // namespace accrue::kernels::scalar
