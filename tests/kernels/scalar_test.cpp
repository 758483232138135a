// The elementary functions: edge values, error in ulp, fixed bits, order, on request every float.
#include "accrue/core/bits.h"
#include "accrue/kernels/scalar/erf.h"
#include "accrue/kernels/scalar/exp.h"
#include "accrue/kernels/scalar/gelu.h"
#include "accrue/kernels/scalar/log.h"
#include "accrue/kernels/scalar/sigmoid.h"
#include "accrue/kernels/scalar/tanh.h"
#include "accrue/tests/support/doctest.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

using namespace accrue;
namespace scalar = accrue::kernels::scalar;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kTiny = 0x1p-149f;
const float kNan = std::nanf("");

struct Function {
  std::string name;
  float (*ours)(float);
  double (*exact)(double);
  double max_ulp;      // the documented bound
  std::uint64_t hash;  // of the results over the fixed subset
  bool rises = true;   // everywhere
};

// In long double, so that what cancels keeps enough digits; the limits where inf meets 0.
double exact_sigmoid(double x) { return static_cast<double>(1 / (1 + std::exp(-1.0L * x))); }
double times_sigmoid(double x, long double w) {
  return x < -300 ? -0.0 : static_cast<double>(x / (1 + std::exp(-w)));
}
double exact_silu(double x) { return times_sigmoid(x, x); }
double exact_gelu(double x) {
  const long double tail = std::erfc(-0.707106781186547524400844362104849039L * x);
  return x < -300 ? -0.0 : static_cast<double>(0.5L * x * tail);
}
double exact_gelu_tanh(double x) {
  const long double root = 1.595769121605730711759L, wide = x;
  return times_sigmoid(x, root * (wide + 0.044715L * wide * wide * wide));
}

const Function kFunctions[] = {
    {"exp", [](float x) { return scalar::exp(x); }, std::exp, 1.02, 0x51da437e509131e4U},
    {"log", [](float x) { return scalar::log(x); }, std::log, 0.91, 0x7dc7736673995bb8U},
    {"tanh", [](float x) { return scalar::tanh(x); }, std::tanh, 1.47, 0x028e80aecdf340b5U},
    {"erf", [](float x) { return scalar::erf(x); }, std::erf, 1.09, 0x9479cda61dfdd785U},
    {"sigmoid",
     [](float x) { return scalar::sigmoid(x); },
     exact_sigmoid,
     0.95,
     0xc43a11fcec2a1963U,
     false},
    {"silu", [](float x) { return scalar::silu(x); }, exact_silu, 1.1, 0x15052e2b8e1eb3dfU, false},
    {"gelu", [](float x) { return scalar::gelu(x); }, exact_gelu, 1.9, 0x557f477ef7643d98U, false},
    {"gelu_tanh",
     [](float x) { return scalar::gelu_tanh(x); },
     exact_gelu_tanh,
     1.3,
     0x1402e5dc239738b2U,
     false},
};

// Distance of y from the exact value in units of the last place of a float there; infinite where
// a NaN, an infinity or a sign is wrong.
double ulp_error(float y, double exact) {
  const float rounded = static_cast<float>(exact);
  if (std::isnan(exact) || std::isinf(rounded) || exact == 0.0) {
    const bool equal = canonical_bits(y) == canonical_bits(rounded);
    return equal ? 0.0 : HUGE_VAL;
  }
  if (!std::isfinite(y) || std::signbit(y) != std::signbit(rounded)) return HUGE_VAL;
  const int exponent = std::max(std::ilogb(exact) - 23, -149);
  return std::abs(std::ldexp(static_cast<double>(y) - exact, -exponent));
}

// 2^20 bit patterns, one from each run of 4,096.
std::uint32_t subset(std::uint32_t i) { return i * 4096 + (i * 2654435761U >> 20); }

}  // namespace

TEST_CASE("kernels.scalar: exp at its edges") {
  CHECK(hex8(scalar::exp(0.0f)) == "3f800000");
  CHECK(hex8(scalar::exp(-0.0f)) == "3f800000");
  CHECK(scalar::exp(kTiny) == 1.0f);
  CHECK(scalar::exp(kInf) == kInf);
  CHECK(hex8(scalar::exp(-kInf)) == "00000000");
  CHECK(std::isnan(scalar::exp(kNan)));
  CHECK(std::isnan(scalar::exp(-kNan)));
  const float largest = float_of(0x42b17217U);  // the last argument with a finite result
  CHECK(ulp_error(scalar::exp(largest), std::exp(static_cast<double>(largest))) < 1.02);
  CHECK(scalar::exp(std::nextafter(largest, kInf)) == kInf);
  CHECK(scalar::exp(std::numeric_limits<float>::max()) == kInf);
  CHECK(scalar::exp(-103.97f) == kTiny);
  CHECK(hex8(scalar::exp(-104.0f)) == "00000000");
  CHECK(hex8(scalar::exp(std::numeric_limits<float>::lowest())) == "00000000");
}

TEST_CASE("kernels.scalar: log at its edges") {
  CHECK(hex8(scalar::log(1.0f)) == "00000000");
  CHECK(scalar::log(0.0f) == -kInf);
  CHECK(scalar::log(-0.0f) == -kInf);
  CHECK(scalar::log(kInf) == kInf);
  CHECK(std::isnan(scalar::log(kNan)));
  CHECK(std::isnan(scalar::log(-kNan)));
  CHECK(std::isnan(scalar::log(-kTiny)));
  CHECK(std::isnan(scalar::log(-kInf)));
  CHECK(ulp_error(scalar::log(kTiny), -149 * std::log(2.0)) < 0.91);
  CHECK(ulp_error(scalar::log(0x1.fffffcp-127f), std::log(0x1.fffffcp-127)) < 0.91);
}

TEST_CASE("kernels.scalar: tanh and erf at their edges") {
  for (const auto function : {kFunctions[2].ours, kFunctions[3].ours}) {
    CHECK(function(kInf) == 1.0f);
    CHECK(function(-kInf) == -1.0f);
    CHECK(function(100.0f) == 1.0f);
    CHECK(std::isnan(function(kNan)));
    CHECK(hex8(function(0.0f)) == "00000000");
    CHECK(hex8(function(-0.0f)) == "80000000");
    CHECK(function(kTiny) == kTiny);
  }
  for (const float x : {0x1p-13f, 0x1.234568p-60f, 0x1.fffffcp-127f, -0x1.5p-140f}) {
    CHECK(scalar::tanh(x) == x);
  }
  CHECK(scalar::erf(0x1p-130f) == static_cast<float>(std::erf(0x1p-130)));
}

TEST_CASE("kernels.scalar: sigmoid and its products at their edges") {
  CHECK(hex8(scalar::sigmoid(-0.0f)) == "3f000000");
  CHECK(scalar::sigmoid(kInf) == 1.0f);
  CHECK(hex8(scalar::sigmoid(-kInf)) == "00000000");
  CHECK(std::isnan(scalar::sigmoid(kNan)));
  for (const std::size_t i : {5U, 6U, 7U}) {
    CAPTURE(kFunctions[i].name);
    const auto function = kFunctions[i].ours;
    CHECK(function(kInf) == kInf);
    CHECK(function(3e38f) == 3e38f);
    CHECK(hex8(function(-kInf)) == "80000000");
    CHECK(hex8(function(-3e38f)) == "80000000");
    CHECK(std::isnan(function(kNan)));
    CHECK(hex8(function(0.0f)) == "00000000");
    CHECK(hex8(function(-0.0f)) == "80000000");
  }
  using Slope = float (*)(float);
  for (const Slope slope : {Slope([](float x) { return scalar::silu_slope(x); }),
                            Slope([](float x) { return scalar::gelu_slope(x); }),
                            Slope([](float x) { return scalar::gelu_tanh_slope(x); })}) {
    CHECK(slope(kInf) == 1.0f);
    CHECK(slope(3e38f) == 1.0f);
    CHECK(slope(-kInf) == 0.0f);
    CHECK(slope(0.0f) == 0.5f);
    CHECK(std::isnan(slope(kNan)));
  }
}

TEST_CASE("kernels.scalar: errors stay within the documented bounds and the bits are fixed") {
  for (const Function& f : kFunctions) {
    double worst = 0;
    float where = 0;
    std::uint64_t hash = kHashSeed;
    for (std::uint32_t i = 0; i < 1U << 20; ++i) {
      const float x = float_of(subset(i));
      const float y = f.ours(x);
      hash = hash_bits(std::span(&y, 1), hash);
      const double error = ulp_error(y, f.exact(static_cast<double>(x)));
      if (error > worst) where = x;
      worst = std::max(worst, error);
    }
    CAPTURE(f.name);
    CAPTURE(where);
    CHECK(worst <= f.max_ulp);
    CHECK(hex16(hash) == hex16(f.hash));
    MESSAGE(f.name, ": 1048576 floats, worst error ", worst, " ulp at ", where);
  }
}

TEST_CASE("kernels.scalar: results never fall where the argument rises") {
  for (const Function& f : kFunctions) {
    if (!f.rises) continue;
    int num_falls = 0;
    const bool is_log = f.exact(1.0) == 0.0;
    float below = f.ours(is_log ? 0.0f : -kInf);
    for (std::uint32_t i = 0; i < 1U << 20; ++i) {
      const std::uint32_t bits = subset(i);  // ascending bits descend below zero
      const float x = i < 1U << 19 ? float_of(0xffffffffU - bits) : float_of(bits - 0x80000000U);
      if (std::isnan(x) || (is_log && x < 0)) continue;
      const float y = f.ours(x);
      num_falls += y < below;
      below = y;
    }
    CAPTURE(f.name);
    CHECK(num_falls == 0);
  }
}

TEST_CASE("kernels.scalar: neighbours across the joins of formulas fall by at most one ulp") {
  for (const Function& f : kFunctions) {
    if (!f.rises) continue;
    for (const float join :
         {0.55f, 0.921875f, 3.93f, 0.70710678f, 1.41421356f, 0.34657359f, 1.0f}) {
      std::uint64_t worst = 0;
      for (std::uint32_t bits = bits_of(join) - 5000; bits < bits_of(join) + 5000; ++bits) {
        const float low = f.ours(float_of(bits)), high = f.ours(float_of(bits + 1));
        if (high < low) worst = std::max(worst, ulp_distance(low, high));
      }
      CAPTURE(f.name);
      CAPTURE(join);
      CHECK(worst <= 1);
    }
  }
}

TEST_CASE("kernels.scalar: every float on request") {
  const char* request = std::getenv("ACCRUE_EXHAUSTIVE");
  if (request == nullptr || request[0] != '1') {
    MESSAGE("skipped: set ACCRUE_EXHAUSTIVE=1");
    return;
  }
  for (const Function& f : kFunctions) {
    double worst = 0;
    float where = 0;
    for (std::uint64_t bits = 0; bits < 1ULL << 32; ++bits) {
      const float x = float_of(static_cast<std::uint32_t>(bits));
      const double error = ulp_error(f.ours(x), f.exact(static_cast<double>(x)));
      if (error > worst) where = x;
      worst = std::max(worst, error);
    }
    CAPTURE(f.name);
    CAPTURE(where);
    CHECK(worst <= f.max_ulp);
    MESSAGE(f.name, ": 4294967296 floats, worst error ", worst, " ulp at ", where);
  }
}
