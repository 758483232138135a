// Which rows hold anything but zeros, for chains that pass over the others.
#pragma once

#include "accrue/kernels/cuda/layouts.cuh"
#include "accrue/kernels/cuda/stream.h"

namespace accrue::kernels::cuda {

inline constexpr int kLiveThreads = 256;

/// live[row] = whether a row holds anything but zeros. A warp per row.
template <class T>
ACCRUE_KERNEL(kLiveThreads)
void find_live(const T* a,
               ACCRUE_PARAMETER Layouts<1> rows,
               ACCRUE_PARAMETER Layouts<1> inner,
               std::uint8_t* live) {
  constexpr int kWarps = kLiveThreads / kWarpSize;
  const std::int64_t row = std::int64_t{block_x()} * kWarps + thread_index() / kWarpSize;
  if (row >= rows.count) return;
  const T* const first = a + rows.offsets(row)[0];
  bool is_live = false;
  for (std::int64_t i = thread_index() % kWarpSize; i < inner.count; i += kWarpSize) {
    is_live = is_live || first[inner.offsets(i)[0]] != T(0);
  }
  is_live = any_lane(is_live);
  if (thread_index() % kWarpSize == 0) live[row] = is_live;
}

/// Writes a byte for each row of `a`, whose elements lie as `inner` says.
template <class T>
void find_live_rows(const T* a,
                    const Layouts<1>& rows,
                    const Layouts<1>& inner,
                    std::uint8_t* live,
                    Stream stream) {
  constexpr std::int64_t kWarps = kLiveThreads / kWarpSize;
  if (rows.count == 0) return;
  launch({.name = "find_live_rows",
          .grid_x = (rows.count + kWarps - 1) / kWarps,
          .threads = kLiveThreads,
          .stream = stream},
         find_live<T>,
         a,
         rows,
         inner,
         live);
}

}  // namespace accrue::kernels::cuda
