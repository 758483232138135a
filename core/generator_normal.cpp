// Normal draws of torch's CPU generator: pairs in double, or blocks of 16 with torch's own
// polynomials.
#include "accrue/core/bits.h"
#include "accrue/core/error.h"
#include "accrue/core/generator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace accrue {
namespace {

constexpr std::size_t kBlock = 16;  // numbers made from one block of uniforms

// log and sincos of torch's vectorised normals: Cephes polynomials. Library functions would differ
// between machines.
float log_polynomial(float x) {
  x = std::max(x, std::numeric_limits<float>::min());
  const std::uint32_t bits = bits_of(x);
  float e = static_cast<float>(static_cast<int>(bits >> 23) - 126);
  const float m = float_of((bits & 0x007fffffU) | 0x3f000000U);
  if (m < 0.707106781186547524f) {
    e -= 1.0f;
    x = (m - 1.0f) + m;
  } else {
    x = m - 1.0f;
  }
  const float z = x * x;
  float y = 7.0376836292E-2f;
  for (const float c : {-1.1514610310E-1f,
                        1.1676998740E-1f,
                        -1.2420140846E-1f,
                        1.4249322787E-1f,
                        -1.6668057665E-1f,
                        2.0000714765E-1f,
                        -2.4999993993E-1f,
                        3.3333331174E-1f}) {
    y = std::fma(y, x, c);
  }
  y = y * x;
  y = std::fma(y, z, e * -2.12194440e-4f);
  y = std::fma(-z, 0.5f, y);
  return std::fma(e, 0.693359375f, x + y);
}

struct SinCos {
  float sin, cos;
};

// For x >= 0: reduction to an octant j, one polynomial for each of the two functions.
SinCos sincos_polynomial(float x) {
  const int j = (static_cast<int>(x * 1.27323954473516f) + 1) & ~1;
  const float y = static_cast<float>(j);
  x = std::fma(y, -0.78515625f, x);
  x = std::fma(y, -2.4187564849853515625e-4f, x);
  x = std::fma(y, -3.77489497744594108e-8f, x);
  const float z = x * x;
  float p = 2.443315711809948E-5f;
  p = std::fma(p, z, -1.388731625493765E-3f);
  p = std::fma(p, z, 4.166664568298827E-2f);
  p = p * z;
  p = std::fma(p, z, -(z * 0.5f));
  p = p + 1.0f;
  float q = -1.9515295891E-4f;
  q = std::fma(q, z, 8.3321608736E-3f);
  q = std::fma(q, z, -1.6666654611E-1f);
  q = q * z;
  q = std::fma(q, x, x);
  if (j & 2) std::swap(p, q);
  return {(j & 4) ? -q : q, (~(j - 2) & 4) ? -p : p};
}

// Turns 16 uniforms into 16 normals: u1 and u2 of pair i lie 8 apart.
void normal_block(float* x, float mean, float std) {
  for (int i = 0; i < 8; ++i) {
    const float radius = std::sqrt(-2.0f * log_polynomial(1.0f - x[i]));
    const auto [sin, cos] = sincos_polynomial(2.0f * std::numbers::pi_v<float> * x[i + 8]);
    x[i] = std::fma(radius * cos, std, mean);
    x[i + 8] = std::fma(radius * sin, std, mean);
  }
}

void normal_block(double* x, double mean, double std) {
  for (int i = 0; i < 8; ++i) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - x[i]));
    const double theta = 2.0 * std::numbers::pi * x[i + 8];
    x[i] = std::fma(radius * std::cos(theta), std, mean);
    x[i + 8] = std::fma(radius * std::sin(theta), std, mean);
  }
}

void check_normal(double std) {
  ACCRUE_CHECK(std >= 0.0, ValueError, "normal", "std must be >= 0, got ", std, "; pass a size");
}

template <class T>
void fill_normal(Generator& generator, std::span<T> out, double mean, double std) {
  check_normal(std);
  if (out.size() < kBlock) {
    for (T& value : out) value = static_cast<T>(generator.normal(mean, std));
    return;
  }
  const T m = static_cast<T>(mean), s = static_cast<T>(std);
  generator.uniform(out);
  for (std::size_t i = 0; i + kBlock <= out.size(); i += kBlock) normal_block(&out[i], m, s);
  if (out.size() % kBlock != 0) {
    const std::span<T> tail = out.last(kBlock);  // drawn anew, over the last whole block's end
    generator.uniform(tail);
    normal_block(tail.data(), m, s);
  }
}

}  // namespace

void Generator::normal(std::span<float> out, double mean, double std) {
  fill_normal(*this, out, mean, std);
}

void Generator::normal(std::span<double> out, double mean, double std) {
  fill_normal(*this, out, mean, std);
}

double Generator::normal(double mean, double std) {
  check_normal(std);
  double value = 0.0;
  if (spare_) {
    value = *std::exchange(spare_, std::nullopt);
  } else {
    const double theta = 2.0 * std::numbers::pi * uniform_double();
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform_double()));
    spare_ = radius * std::sin(theta);
    value = radius * std::cos(theta);
  }
  return std::fma(value, std, mean);
}

}  // namespace accrue
