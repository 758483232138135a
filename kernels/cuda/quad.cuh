// Four neighbours of an array at a time: how elementwise kernels read and write.
#pragma once

#include "accrue/kernels/cuda/platform.h"

namespace accrue::kernels::cuda {

inline constexpr int kQuadThreads = 256, kQuad = 4;

/// How many elements lie between `data` and the next multiple of 16 bytes.
ACCRUE_DEVICE int elements_to_aligned(const float* data) {
  if (is_aligned4(data)) return 0;
  if (is_aligned4(data + 1)) return 1;
  return is_aligned4(data + 2) ? 2 : 3;
}

/// The first element of this thread's quad.
ACCRUE_DEVICE std::int64_t quad_begin() {
  return (std::int64_t{block_x()} * kQuadThreads + thread_index()) * kQuad;
}

/// Elements [i, i + 4) of `count`; 0 for those beyond.
ACCRUE_DEVICE Float4 read_quad(const float* data, std::int64_t i, std::int64_t count) {
  if (i + kQuad <= count && is_aligned4(data + i)) return load4(data + i);
  Float4 out{};
  ACCRUE_UNROLL
  for (int c = 0; c < kQuad; ++c) {
    if (i + c < count) out.v[c] = data[i + c];
  }
  return out;
}

ACCRUE_DEVICE void write_quad(float* data, std::int64_t i, std::int64_t count, Float4 quad) {
  if (i + kQuad <= count && is_aligned4(data + i)) return store4(data + i, quad);
  ACCRUE_UNROLL
  for (int c = 0; c < kQuad; ++c) {
    if (i + c < count) data[i + c] = quad.v[c];
  }
}

/// The launch of kernel(..., count) with a thread for each quad.
inline Launch quad_launch(const char* name, std::int64_t count, Stream stream) {
  constexpr std::int64_t kBlock = kQuadThreads * kQuad;
  return {.name = name,
          .grid_x = (count + kBlock - 1) / kBlock,
          .threads = kQuadThreads,
          .stream = stream};
}

}  // namespace accrue::kernels::cuda
