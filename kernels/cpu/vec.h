// Vec and TileVec: the floats of one register, for the sources compiled per instruction set.
//
// + acts per element (GCC vector extensions). Each operation rounds as its scalar twin, so a vector
// kernel equals a scalar loop in every bit.
#pragma once

#include <cstdint>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#define ACCRUE_INLINE inline __attribute__((always_inline))

namespace accrue::kernels::ACCRUE_ISA {

/// Eight floats.
using Vec = float __attribute__((vector_size(32)));
inline constexpr int kVecSize = 8;

/// The widest register.
#ifdef __AVX512F__
using TileVec = float __attribute__((vector_size(64)));
#else
using TileVec = Vec;
#endif
inline constexpr int kTileVecSize = sizeof(TileVec) / sizeof(float);

/// A vector at any address, seen as the floats it consists of.
template <class V>
struct __attribute__((packed, may_alias)) Unaligned {
  V value;
};

template <class V = Vec>
ACCRUE_INLINE V load(const float* p) {
  return reinterpret_cast<const Unaligned<V>*>(p)->value;
}

template <class V>
ACCRUE_INLINE void store(float* p, V v) {
  reinterpret_cast<Unaligned<V>*>(p)->value = v;
}

template <class V = Vec>
ACCRUE_INLINE V broadcast(float x) {
  if constexpr (sizeof(V) == sizeof(Vec)) {
    return V{x, x, x, x, x, x, x, x};
  } else {
    return V{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
  }
}

#ifdef __AVX2__
/// Ones for the first `count` elements.
ACCRUE_INLINE __m256i first_of_8(int count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
#endif
#ifdef __AVX512F__
ACCRUE_INLINE __mmask16 first_of_16(int count) { return static_cast<__mmask16>((1U << count) - 1); }
#endif

/// The first `count` elements, the rest +0. Touches no byte beyond them. A count may be negative
/// for Vec alone.
template <class V = Vec>
ACCRUE_INLINE V load_partial(const float* p, int count) {
#ifdef __AVX512F__
  if constexpr (sizeof(V) == 64) return _mm512_maskz_loadu_ps(first_of_16(count), p);
#endif
#ifdef __AVX2__
  if constexpr (sizeof(V) == 32) return _mm256_maskload_ps(p, first_of_8(count));
#else
  V v = broadcast<V>(0.0f);
  for (int i = 0; i < kVecSize && i < count; ++i) v[i] = p[i];
  return v;
#endif
}

/// Stores the first `count` elements; as load_partial.
template <class V>
ACCRUE_INLINE void store_partial(float* p, V v, int count) {
#ifdef __AVX512F__
  if constexpr (sizeof(V) == 64) return _mm512_mask_storeu_ps(p, first_of_16(count), v);
#endif
#ifdef __AVX2__
  if constexpr (sizeof(V) == 32) return _mm256_maskstore_ps(p, first_of_8(count), v);
#else
  for (int i = 0; i < kVecSize && i < count; ++i) p[i] = v[i];
#endif
}

/// a * b + c, rounded once.
ACCRUE_INLINE TileVec fma(TileVec a, TileVec b, TileVec c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__)
  return _mm256_fmadd_ps(a, b, c);
#else
  for (int i = 0; i < kTileVecSize; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
#endif
}

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
