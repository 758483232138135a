// Packing: copies a block of a matrix into the order in which tiles read it. Only for ISA_SOURCES.
#pragma once

#include "accrue/kernels/cpu/vec.h"

namespace accrue::kernels::ACCRUE_ISA {

/// A strip of a matrix: `depth` values of k, `width` values across (at most 2 * kVecSize).
struct Strip {
  const float* data = nullptr;
  std::int64_t k_stride = 0, across_stride = 0;
  std::int64_t depth = 0;
  int width = 0;
};

/// Packs eight values across of a strip whose k is contiguous, from `across` on.
ACCRUE_INLINE void pack_transposed(const Strip& s, int across, int count, int step, float* to) {
  const float* from = s.data + across * s.across_stride;
  std::int64_t k = 0;
  for (; k + kVecSize <= s.depth; k += kVecSize) {
    Vec block[kVecSize];
#pragma GCC unroll 8
    for (int i = 0; i < kVecSize; ++i)
      block[i] = i < count ? load(from + i * s.across_stride + k) : broadcast(0.0f);
    transpose(block);
#pragma GCC unroll 8
    for (int i = 0; i < kVecSize; ++i) store(to + (k + i) * step, block[i]);
  }
  for (; k < s.depth; ++k) {
    Vec row = broadcast(0.0f);
    for (int i = 0; i < count; ++i) row[i] = from[i * s.across_stride + k];
    store(to + k * step, row);
  }
}

/// Packs a strip: value (k, i) goes to to[k * step + i], and +0 fills up to a multiple of eight.
/// Where `step` is smaller, what is written later overwrites the filling: eight values of k + 1, or
/// the eight before. Up to eight floats past the strip are touched.
inline void pack(const Strip& s, int step, float* to) {
  for (int across = (s.width - 1) / kVecSize * kVecSize; across >= 0; across -= kVecSize) {
    const int count = s.width - across < kVecSize ? s.width - across : kVecSize;
    if (s.across_stride == 1) {
      const float* from = s.data + across;
      if (count == kVecSize) {
        for (std::int64_t k = 0; k < s.depth; ++k)
          store(to + across + k * step, load(from + k * s.k_stride));
      } else {
        for (std::int64_t k = 0; k < s.depth; ++k)
          store(to + across + k * step, load_partial(from + k * s.k_stride, count));
      }
    } else if (s.k_stride == 1) {
      pack_transposed(s, across, count, step, to + across);
    } else {
      for (std::int64_t k = 0; k < s.depth; ++k) {
        Vec row = broadcast(0.0f);
        for (int i = 0; i < count; ++i)
          row[i] = s.data[k * s.k_stride + (across + i) * s.across_stride];
        store(to + across + k * step, row);
      }
    }
  }
}

}  // namespace accrue::kernels::ACCRUE_ISA
