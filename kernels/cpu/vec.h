// Vec: eight floats, the arithmetic of every CPU kernel. Only for sources in ISA_SOURCES.
//
// +, -, *, / and comparisons act per element (GCC vector extensions); `mask ? a : b` selects.
// Each operation rounds as its scalar twin, so a Vec kernel equals a scalar loop in every bit.
#pragma once

#include <cstdint>
#include <cstring>

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace accrue::kernels::ACCRUE_ISA {

using Vec = float __attribute__((vector_size(32)));
using IntVec = std::int32_t __attribute__((vector_size(32)));  // also the type of a mask
inline constexpr int kVecSize = 8;

#define ACCRUE_INLINE inline __attribute__((always_inline))

ACCRUE_INLINE Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

ACCRUE_INLINE void store(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }

ACCRUE_INLINE Vec broadcast(float x) { return Vec{x, x, x, x, x, x, x, x}; }

/// The integers 0 to 7.
ACCRUE_INLINE IntVec iota() { return IntVec{0, 1, 2, 3, 4, 5, 6, 7}; }

/// The first `count` elements, the rest +0. Touches no byte beyond them.
ACCRUE_INLINE Vec load_partial(const float* p, int count) {
#ifdef __AVX2__
  return _mm256_maskload_ps(p, reinterpret_cast<__m256i>(iota() < count));
#else
  Vec v = broadcast(0.0f);
  std::memcpy(&v, p, static_cast<std::size_t>(count) * sizeof(float));
  return v;
#endif
}

/// Stores the first `count` elements. Touches no byte beyond them.
ACCRUE_INLINE void store_partial(float* p, Vec v, int count) {
#ifdef __AVX2__
  _mm256_maskstore_ps(p, reinterpret_cast<__m256i>(iota() < count), v);
#else
  std::memcpy(p, &v, static_cast<std::size_t>(count) * sizeof(float));
#endif
}

/// a * b + c, rounded once.
ACCRUE_INLINE Vec fma(Vec a, Vec b, Vec c) {
#ifdef __AVX2__
  return _mm256_fmadd_ps(a, b, c);
#else
  for (int i = 0; i < kVecSize; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
#endif
}

/// a > b ? a : b per element: b where either is NaN.
ACCRUE_INLINE Vec max(Vec a, Vec b) { return a > b ? a : b; }
/// a < b ? a : b per element: b where either is NaN.
ACCRUE_INLINE Vec min(Vec a, Vec b) { return a < b ? a : b; }

ACCRUE_INLINE IntVec as_int(Vec v) { return reinterpret_cast<IntVec>(v); }
ACCRUE_INLINE Vec as_float(IntVec v) { return reinterpret_cast<Vec>(v); }

/// Transposes the 8x8 block whose rows are r[0] to r[7].
ACCRUE_INLINE void transpose(Vec (&r)[8]) {
  Vec s[8];
  for (int i = 0; i < 8; i += 2) {  // pairs of rows, interleaved
    s[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    s[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4) {  // quads
    r[i] = __builtin_shufflevector(s[i], s[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    r[i + 1] = __builtin_shufflevector(s[i], s[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    r[i + 2] = __builtin_shufflevector(s[i + 1], s[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
    r[i + 3] = __builtin_shufflevector(s[i + 1], s[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
  }
  for (int i = 0; i < 4; ++i) {  // halves
    const Vec low = r[i], high = r[i + 4];
    r[i] = __builtin_shufflevector(low, high, 0, 1, 2, 3, 8, 9, 10, 11);
    r[i + 4] = __builtin_shufflevector(low, high, 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

}  // namespace accrue::kernels::ACCRUE_ISA
