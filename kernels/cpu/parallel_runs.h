// parallel_runs: for_each_run with the elements split over threads.
#pragma once

#include "accrue/core/strided.h"
#include "accrue/kernels/cpu/parallel.h"

#include <algorithm>

namespace accrue::kernels {

/// Calls `body(run)` for runs that together visit all `numel` elements of `shape`; each thread has
/// a range of the row-major order, at least `grain` elements long, and cuts runs at its ends.
template <std::size_t N, class Body>
void parallel_runs(const Shape& shape,
                   const std::array<Shape, N>& strides,
                   std::int64_t numel,
                   std::int64_t grain,
                   const Body& body) {
  parallel_for(numel, grain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t position = 0;
    for_each_run<N>(shape, strides, [&](const StridedRun<N>& run) {
      const std::int64_t first = std::max<std::int64_t>(begin - position, 0);
      const std::int64_t last = std::min(end - position, run.count);
      position += run.count;
      if (first >= last) return;
      StridedRun<N> part = run;
      part.count = last - first;
      for (std::size_t n = 0; n < N; ++n) part.offset[n] += first * run.stride[n];
      body(static_cast<const StridedRun<N>&>(part));
    });
  });
}

}  // namespace accrue::kernels
