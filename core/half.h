// BFloat16 and Float16: two bytes that hold a float, for storage. Arithmetic happens in float.
#pragma once

#include "accrue/core/bits.h"

#include <concepts>
#include <cstdint>

namespace accrue {

/// The bits of `x` in a format of `kExponent` exponent and `kFraction` fraction bits, rounded once
/// to nearest, ties to even: through the subnormals to zero, and to infinity from half a step above
/// the largest number. NaN stays NaN of the same sign, made quiet.
template <int kExponent, int kFraction>
constexpr std::uint16_t narrow_bits(double x) {
  constexpr std::uint64_t kInfinity = ((1U << kExponent) - 1U) << kFraction;
  constexpr int kBias = (1 << (kExponent - 1)) - 1, kDropped = 52 - kFraction;
  const std::uint64_t bits = bits_of(x), size = bits & 0x7fffffffffffffffU;
  const std::uint64_t sign = bits >> 63 << 15;
  if (x != x) {
    const std::uint64_t payload = size >> kDropped & ((1U << kFraction) - 1U);
    return static_cast<std::uint16_t>(sign | kInfinity | 1U << (kFraction - 1) | payload);
  }
  const int exponent = static_cast<int>(size >> 52) - 1023 + kBias;
  const std::uint64_t fraction = size & 0xfffffffffffffU;
  if (exponent >= (1 << kExponent) - 1) return static_cast<std::uint16_t>(sign | kInfinity);
  const bool is_normal = exponent > 0;
  const int shift = is_normal ? kDropped : kDropped + 1 - exponent;
  if (shift > 60) return static_cast<std::uint16_t>(sign);
  const std::uint64_t leading = is_normal ? static_cast<std::uint64_t>(exponent) : 1U;
  const std::uint64_t value = leading << 52 | fraction, odd = value >> shift & 1U;
  const std::uint64_t rounded = (value + ((std::uint64_t{1} << (shift - 1)) - 1U) + odd) >> shift;
  return static_cast<std::uint16_t>(sign | rounded);  // a carry moves into the exponent
}

/// `x` as a double that rounds to half precision as x itself would.
template <class T>
constexpr double for_narrowing(T x) {
  if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    // Beyond 2^53 the last bits only tell whether x lies above a tie: one bit says so.
    const auto wide = static_cast<std::int64_t>(x);
    if (wide < 0x20000000000000 && wide > -0x20000000000000) return static_cast<double>(wide);
    return static_cast<double>((wide & ~std::int64_t{4095}) | ((wide & 4095) != 0 ? 2048 : 0));
  } else {
    return static_cast<double>(x);
  }
}

/// torch.bfloat16: the upper half of a float.
struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  template <class T>
  requires std::is_arithmetic_v<T>
  explicit constexpr BFloat16(T x) : bits(narrow_bits<8, 7>(for_narrowing(x))) {}
  static constexpr BFloat16 from_bits(std::uint16_t bits) {
    BFloat16 result{};
    result.bits = bits;
    return result;
  }
  explicit constexpr operator float() const {
    const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
    return float_of((wide & 0x7fffffffU) > 0x7f800000U ? wide | 0x400000U : wide);
  }
  explicit constexpr operator double() const { return static_cast<float>(*this); }
};

/// torch.float16, IEEE binary16: 5 exponent and 10 fraction bits.
struct Float16 {
  std::uint16_t bits = 0;

  Float16() = default;
  template <class T>
  requires std::is_arithmetic_v<T>
  explicit constexpr Float16(T x) : bits(narrow_bits<5, 10>(for_narrowing(x))) {}
  static constexpr Float16 from_bits(std::uint16_t bits) {
    Float16 result{};
    result.bits = bits;
    return result;
  }
  explicit constexpr operator float() const {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    const std::uint32_t exponent = bits >> 10 & 31U, fraction = bits & 0x3ffU;
    if (exponent == 0) {
      const float size = static_cast<float>(fraction) * 0x1p-24f;
      return sign == 0 ? size : -size;
    }
    if (exponent < 31) return float_of(sign | (exponent + 112) << 23 | fraction << 13);
    const std::uint32_t quiet = fraction == 0 ? 0U : 0x400000U;
    return float_of(sign | 0x7f800000U | quiet | fraction << 13);
  }
  explicit constexpr operator double() const { return static_cast<float>(*this); }
};

template <class T>
inline constexpr bool is_half = std::same_as<T, BFloat16> || std::same_as<T, Float16>;

/// Equal values, as for floats: -0 == +0, NaN equals nothing.
template <class T>
requires is_half<T>
constexpr bool operator==(T a, T b) { return static_cast<float>(a) == static_cast<float>(b); }

/// The bits for hashing: every NaN is the same.
template <class T>
requires is_half<T>
constexpr std::uint64_t canonical_bits(T x) { return x == x ? x.bits : 0xffffU; }

}  // namespace accrue
