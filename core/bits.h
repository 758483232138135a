// Bit patterns: floats as integers, distance in units in the last place, hashes, hex text.
#pragma once

#include "accrue/core/host_device.h"

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

namespace accrue {

ACCRUE_HD constexpr std::uint32_t bits_of(float x) { return __builtin_bit_cast(std::uint32_t, x); }
ACCRUE_HD constexpr std::uint64_t bits_of(double x) { return __builtin_bit_cast(std::uint64_t, x); }
ACCRUE_HD constexpr float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
ACCRUE_HD constexpr double double_of(std::uint64_t bits) {
  return __builtin_bit_cast(double, bits);
}

/// The bits of a value for hashing: every NaN becomes the positive quiet NaN without payload
/// (0x7fc00000, 0x7ff8000000000000), because CPUs and GPUs make different NaNs. Integers are
/// sign-extended.
template <class T>
requires std::is_arithmetic_v<T> ACCRUE_HD constexpr std::uint64_t canonical_bits(T x) {
  if constexpr (std::is_same_v<T, float>) {
    return x == x ? bits_of(x) : 0x7fc00000U;
  } else if constexpr (std::is_same_v<T, double>) {
    return x == x ? bits_of(x) : 0x7ff8000000000000U;
  } else {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
  }
}

/// Start value of hash_bits.
inline constexpr std::uint64_t kHashSeed = 0xcbf29ce484222325U;

/// Hash of the bits of `values`, continued from `hash`; spans hash like their concatenation.
///
/// Per element w = canonical_bits(value): h = (h ^ w) * 0x9e3779b97f4a7c15, then h = h ^ (h >> 32).
/// Each step is a bijection of h and of w, so two spans that differ in one element never collide.
template <class T, std::size_t Extent>
constexpr std::uint64_t hash_bits(std::span<T, Extent> values, std::uint64_t hash = kHashSeed) {
  for (const auto& value : values) {
    hash = (hash ^ canonical_bits(value)) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 32;
  }
  return hash;
}

/// Number of representable values between a and b: 0 for equal values (+0 and -0 too) and for two
/// NaNs, the largest value of the type for one NaN. Infinity is one step beyond the largest finite
/// value.
template <std::floating_point T>
constexpr std::uint64_t ulp_distance(T a, T b) {
  if (a != a || b != b) return (a != a) == (b != b) ? 0 : UINT64_MAX;
  using Int = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  const auto order = [](T x) {
    const auto bits = static_cast<std::int64_t>(static_cast<Int>(bits_of(x)));
    return bits >= 0 ? bits : std::int64_t{std::numeric_limits<Int>::min()} - bits;
  };
  const std::int64_t i = order(a), j = order(b);
  return i > j ? static_cast<std::uint64_t>(i) - static_cast<std::uint64_t>(j)
               : static_cast<std::uint64_t>(j) - static_cast<std::uint64_t>(i);
}

/// The value as `digits` lower-case hexadecimal digits, leading zeros kept.
inline std::string hex(std::uint64_t value, int digits) {
  std::string out(static_cast<std::size_t>(digits), '0');
  for (int i = digits - 1; i >= 0; --i, value >>= 4) {
    out[static_cast<std::size_t>(i)] = "0123456789abcdef"[value & 15];
  }
  return out;
}

/// Eight digits for the bits of a float: hex8(1.0f) == "3f800000".
inline std::string hex8(float x) { return hex(bits_of(x), 8); }
/// Sixteen digits, for a double's bits or a hash.
inline std::string hex16(double x) { return hex(bits_of(x), 16); }
inline std::string hex16(std::uint64_t x) { return hex(x, 16); }

}  // namespace accrue
