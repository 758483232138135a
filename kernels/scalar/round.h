// round_to(): the nearest value of a narrower format, in the type that it came in.
#pragma once

#include "accrue/core/bits.h"

#include <type_traits>

namespace accrue::kernels::scalar {

ACCRUE_HD float value_of(std::uint32_t bits) { return float_of(bits); }
ACCRUE_HD double value_of(std::uint64_t bits) { return double_of(bits); }

/// x rounded once to a format of kExponent exponent and kFraction fraction bits, to nearest, ties
/// to even: through the subnormals to a zero of its sign, and to infinity from half a step above
/// the largest number. NaN stays NaN. Bits as static_cast<T>(BFloat16(x)) and Float16, without a
/// branch.
template <int kExponent, int kFraction, class T>
ACCRUE_HD T round_to(T x) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr int kOwnFraction = sizeof(T) == 4 ? 23 : 52, kOwnBias = sizeof(T) == 4 ? 127 : 1023;
  constexpr int kDropped = kOwnFraction - kFraction, kBias = (1 << (kExponent - 1)) - 1;
  constexpr auto power = [](int exponent) {
    return static_cast<Bits>(exponent + kOwnBias) << kOwnFraction;
  };
  constexpr Bits kSmallestNormal = power(1 - kBias), kTooLarge = power(kBias + 1);
  constexpr Bits kInfinity = power(kOwnBias + 1), kSign = Bits{1} << (8 * sizeof(T) - 1);
  const Bits bits = bits_of(x), sign = bits & kSign, size = bits ^ sign;
  // Half a step is added; a carry moves into the exponent.
  const Bits odd = size >> kDropped & 1U;
  const Bits whole = (size + (Bits{1} << (kDropped - 1)) - 1U + odd) >> kDropped << kDropped;
  const Bits normal = whole >= kTooLarge ? kInfinity : whole;
  // Below the normal numbers all steps are equal: those of T at this power of two.
  constexpr Bits kStep = power(1 - kBias + kDropped);
  const T step = value_of(kStep);
  const Bits small = bits_of((value_of(size) + step) - step);
  const T rounded = value_of((size < kSmallestNormal ? small : normal) | sign);
  return x == x ? rounded : x;
}

template <class T>
ACCRUE_HD T round_to_bfloat16(T x) {
  return round_to<8, 7>(x);
}
template <class T>
ACCRUE_HD T round_to_float16(T x) {
  return round_to<5, 10>(x);
}

}  // namespace accrue::kernels::scalar
