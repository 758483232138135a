// pow: x^y in explicit IEEE operations in double, rounded to float once.
#pragma once

#include "accrue/core/host_device.h"
#include "accrue/kernels/scalar/float_ops.h"

#include <cmath>
#include <cstdint>

namespace accrue::kernels::scalar {

/// Exponents that pow raises to by multiplication: whole numbers up to this size.
inline constexpr float kMaxWholeExponent = 64;

/// log2 of x > 0 (of a subnormal float too, which is a normal double), off by less than 2^-48 of
/// its value. x = m * 2^k with m in [sqrt(1/2), sqrt(2)); ln m = 2 atanh((m - 1) / (m + 1)).
ACCRUE_HD double log2_of_float(double x) {
  const std::uint64_t bits = bits_of(x);
  constexpr std::uint64_t kRootHalf = 0x3fe6a09e667f3bcdU;
  const std::int32_t k = static_cast<std::int32_t>((bits - kRootHalf) >> 32) >> 20;
  const double m =
      double_of(bits - (static_cast<std::uint64_t>(static_cast<std::int64_t>(k)) << 52));
  const double f = (m - 1.0) / (m + 1.0), z = f * f;
  double p = 1.0 / 19;
  p = fma(p, z, 1.0 / 17);
  p = fma(p, z, 1.0 / 15);
  p = fma(p, z, 1.0 / 13);
  p = fma(p, z, 1.0 / 11);
  p = fma(p, z, 1.0 / 9);
  p = fma(p, z, 1.0 / 7);
  p = fma(p, z, 1.0 / 5);
  p = fma(p, z, 1.0 / 3);
  constexpr double kTwoOverLn2 = 0x1.71547652b82fep+1;
  return fma(kTwoOverLn2, fma(f * z, p, f), static_cast<double>(k));
}

/// 2^x as a double for |x| <= 1000, off by less than 2^-46 of its value.
ACCRUE_HD double exp2_of_double(double x) {
  constexpr double kRound = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  const double shifted = x + kRound;
  const std::uint64_t k = bits_of(shifted) - bits_of(kRound);
  const double r = (x - (shifted - kRound)) * 0x1.62e42fefa39efp-1;
  double p = 1.0 / 39916800;
  p = fma(p, r, 1.0 / 3628800);
  p = fma(p, r, 1.0 / 362880);
  p = fma(p, r, 1.0 / 40320);
  p = fma(p, r, 1.0 / 5040);
  p = fma(p, r, 1.0 / 720);
  p = fma(p, r, 1.0 / 120);
  p = fma(p, r, 1.0 / 24);
  p = fma(p, r, 1.0 / 6);
  p = fma(p, r, 1.0 / 2);
  p = fma(p, r, 1.0);
  p = fma(p, r, 1.0);
  return p * double_of((k + 1023) << 52);
}

ACCRUE_HD bool is_small_whole(float y) {
  return absolute(y) <= kMaxWholeExponent && __builtin_floorf(y) == y;
}

/// x^n by squaring, in double, for a whole n of at most kMaxWholeExponent in size.
ACCRUE_HD float whole_power(float x, float n) {
  const int size = static_cast<int>(absolute(n));
  double power = 1.0, square = x;
  for (int bit = 1; bit <= size; bit *= 2) {
    if (size & bit) power *= square;
    square *= square;
  }
  return static_cast<float>(n < 0.0f ? 1.0 / power : power);
}

/// x^y by 2^(y log2 |x|), with the sign and the edges of IEEE pow.
ACCRUE_HD float general_power(float x, float y) {
  const float size = absolute(x);
  double exponent = static_cast<double>(y) * log2_of_float(static_cast<double>(size));
  exponent = exponent > 200.0 ? 200.0 : exponent;
  exponent = exponent < -200.0 ? -200.0 : exponent;
  float power = static_cast<float>(exp2_of_double(exponent));
  constexpr float kInf = __builtin_huge_valf();
  const bool is_large = y > 0.0f;
  power = select(size == 0.0f, select(is_large, 0.0f, kInf), power);
  power = select(size == kInf, select(is_large, kInf, 0.0f), power);
  power = select(size == 1.0f, 1.0f, power);  // also for infinite y
  const float half = 0.5f * y;
  const bool is_whole = __builtin_floorf(y) == y,
             is_odd = is_whole & (__builtin_floorf(half) != half);
  power = select((x < 0.0f) & !is_whole & (size != kInf), __builtin_nanf(""), power);
  power = select(is_odd, with_sign_of(power, x), power);
  power = select((x != x) | (y != y), x + y, power);
  return select((x == 1.0f) | (y == 0.0f), 1.0f, power);
}

/// x^y, at most 0.51 ulp off, with the edges of IEEE pow: x^0 and 1^y are 1 for NaN too, (-x)^y is
/// NaN unless y is whole, and so on. For whole |y| <= 64 the result is exact where a float holds
/// it, and rounded to even where it lies in the middle of two.
ACCRUE_HD float pow(float x, float y) {
  return is_small_whole(y) ? whole_power(x, y) : general_power(x, y);
}

/// The C library's; for gradient checks, outside the contract.
ACCRUE_HD double pow(double x, double y) { return std::pow(x, y); }

}  // namespace accrue::kernels::scalar
