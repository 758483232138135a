// Images: which elements a sliding kernel sees from an output, and from which outputs an element is
// seen.
#pragma once

#include "accrue/kernels/cuda/each.cuh"
#include "accrue/kernels/sliding.h"

namespace accrue::kernels::cuda {

/// An element of planes of `height` lines.
struct Pixel {
  std::int64_t plane, line, column;

  ACCRUE_DEVICE Pixel(std::int64_t index, std::int64_t height, std::int64_t width) {
    plane = divide(divide(index, width, column), height, line);
  }
};

/// Calls f(place in the plane) for the elements of the plane that output (line, column) sees, taps
/// ascending.
template <class F>
ACCRUE_DEVICE void for_elements(const Sliding& sliding, const Pixel& output, const F& f) {
  const SlidingAxis &h = sliding.h, &w = sliding.w;
  for (std::int64_t tap_h = 0; tap_h < h.size; ++tap_h) {
    const std::int64_t line = output.line * h.stride + h.offset(tap_h);
    if (line < 0 || line >= h.in) continue;
    for (std::int64_t tap_w = 0; tap_w < w.size; ++tap_w) {
      const std::int64_t column = output.column * w.stride + w.offset(tap_w);
      if (column >= 0 && column < w.in) f(line * w.in + column);
    }
  }
}

/// The output that sees the input at a tap, or -1.
ACCRUE_DEVICE std::int64_t output_of(const SlidingAxis& axis,
                                     std::int64_t input,
                                     std::int64_t tap) {
  const std::int64_t distance = input - axis.offset(tap);
  if (distance < 0) return -1;
  std::int64_t rest;
  const std::int64_t output = divide(distance, axis.stride, rest);
  return rest == 0 && output < axis.out ? output : -1;
}

/// Calls f(line, column, tap) for the outputs that see an element: taps ascending, or descending,
/// which are outputs ascending.
template <bool kTapsAscend, class F>
ACCRUE_DEVICE void for_outputs(const Sliding& sliding, const Pixel& element, const F& f) {
  const SlidingAxis &h = sliding.h, &w = sliding.w;
  for (std::int64_t m = 0; m < h.size; ++m) {
    const std::int64_t tap_h = kTapsAscend ? m : h.size - 1 - m;
    const std::int64_t line = output_of(h, element.line, tap_h);
    if (line < 0) continue;
    for (std::int64_t n = 0; n < w.size; ++n) {
      const std::int64_t tap_w = kTapsAscend ? n : w.size - 1 - n;
      const std::int64_t column = output_of(w, element.column, tap_w);
      if (column >= 0) f(line, column, tap_h * w.size + tap_w);
    }
  }
}

}  // namespace accrue::kernels::cuda
