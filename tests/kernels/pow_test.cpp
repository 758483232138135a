// pow: every edge of IEEE pow, error in ulp, exact results.
#include "accrue/kernels/scalar/pow.h"

#include "accrue/core/bits.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>
#include <random>

using namespace accrue;
namespace scalar = accrue::kernels::scalar;

namespace {

/// Distance of y from the exact value in units of the last place of a float there.
double ulp_error(float y, long double exact) {
  const auto rounded = static_cast<float>(exact);
  if (std::isnan(exact) || std::isinf(rounded) || exact == 0) {
    return canonical_bits(y) == canonical_bits(rounded) ? 0 : HUGE_VAL;
  }
  if (!std::isfinite(y) || std::signbit(y) != std::signbit(rounded)) return HUGE_VAL;
  const int exponent = std::max(std::ilogb(exact) - 23, -149);
  return static_cast<double>(std::abs(std::ldexp(y - exact, -exponent)));
}

long double exact_power(float x, float y) {
  return std::pow(static_cast<long double>(x), static_cast<long double>(y));
}

}  // namespace

TEST_CASE("kernels.pow: zeros, ones, infinities, NaN and odd exponents meet as in IEEE pow") {
  const float values[] = {
      0.0f,   -0.0f,   1.0f,   -1.0f,     2.0f,        -2.0f,        3.0f,
      -3.0f,  0.5f,    -0.5f,  2.5f,      -2.5f,       63.0f,        64.0f,
      65.0f,  -65.0f,  66.0f,  1000001.f, 16777215.0f, -16777215.0f, 16777216.0f,
      1e-45f, -1e-45f, 1e-30f, -1e-30f,   3e38f,       -3e38f,       0.99999994f,
      NAN,    1e8f,    1e-38f, HUGE_VALF, -HUGE_VALF,  1.0000001f,   -0.99999994f};
  int num_pairs = 0;
  for (const float x : values) {
    for (const float y : values) {
      CAPTURE(x);
      CAPTURE(y);
      CHECK(ulp_error(scalar::pow(x, y), exact_power(x, y)) <= 0.51);
      ++num_pairs;
    }
  }
  MESSAGE(num_pairs << " pairs");
}

TEST_CASE("kernels.pow: random powers are at most 0.51 ulp off") {
  std::mt19937 random(1);
  double worst = 0;
  int num_powers = 0;
  while (num_powers < 200000) {
    const std::uint32_t bits = static_cast<std::uint32_t>(random());
    const float x = float_of(num_powers % 3 == 0 ? bits & 0x7fffffffU  // all, or sizes near 1
                                                 : 0x3e000000U + (bits & 0x3ffffffU));
    if (!std::isfinite(x) || x == 0) continue;
    const float size = std::ldexp(1.0f + static_cast<float>(random() % 8388608) / 8388608.0f,
                                  static_cast<int>(random() % 20) - 8);
    float y = random() % 2 == 0 ? size : -size;
    if (num_powers % 5 == 0) y = std::round(y);
    if (std::abs(y * std::log2(x)) > 152) continue;
    worst = std::max(worst, ulp_error(scalar::pow(x, y), exact_power(x, y)));
    ++num_powers;
  }
  CHECK(worst <= 0.51);
  MESSAGE(num_powers << " powers, worst error " << worst << " ulp");
}

TEST_CASE("kernels.pow: whole powers that 53 bits hold are rounded correctly, ties to even") {
  int num_powers = 0;
  for (int x = -5000; x <= 5000; ++x) {
    double power = 1;
    for (int n = 0; n <= 64 && std::abs(power) <= 0x1p53; ++n, power *= x) {
      if (scalar::pow(static_cast<float>(x), static_cast<float>(n)) != static_cast<float>(power)) {
        FAIL_CHECK(x << " to the power of " << n);
      }
      ++num_powers;
    }
  }
  CHECK(scalar::pow(4097.0f, 2.0f) == 16785408.0f);  // 4097^2 ends in 9, between two floats
  CHECK(scalar::pow(2.0f, -149.0f) == 0x1p-149f);
  CHECK(scalar::pow(2.0f, -60.0f) == 0x1p-60f);
  MESSAGE(num_powers << " powers");
}
