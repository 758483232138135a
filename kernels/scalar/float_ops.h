// The operations that the scalar formulas are made of: fused multiply-add, selection, powers of
// two.
//
// Everything is inlined: a translation unit compiled for a newer instruction set leaves no copy
// behind that another one could link.
#pragma once

#include "accrue/core/bits.h"
#include "accrue/core/host_device.h"

#include <cstdint>

namespace accrue::kernels::scalar {

/// a * b + c with one rounding.
ACCRUE_HD float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
ACCRUE_HD double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

ACCRUE_HD float sqrt(float x) { return __builtin_sqrtf(x); }
ACCRUE_HD double sqrt(double x) { return __builtin_sqrt(x); }

/// condition ? yes : no on the bits: both sides are computed, so loops over arrays vectorise.
ACCRUE_HD float select(bool condition, float yes, float no) {
  const std::uint32_t mask = 0U - static_cast<std::uint32_t>(condition);
  return float_of((bits_of(yes) & mask) | (bits_of(no) & ~mask));
}

/// The size of `x` with the sign of `sign`; NaN stays NaN.
ACCRUE_HD float with_sign_of(float x, float sign) {
  return float_of((bits_of(x) & 0x7fffffffU) | (bits_of(sign) & 0x80000000U));
}
ACCRUE_HD float absolute(float x) { return float_of(bits_of(x) & 0x7fffffffU); }

/// 2^n for -126 <= n <= 127.
ACCRUE_HD float power_of_two(std::int32_t n) {
  return float_of(static_cast<std::uint32_t>(n + 127) << 23);
}

}  // namespace accrue::kernels::scalar
