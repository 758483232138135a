// Sliding: where a kernel that slides over images reads them.
#pragma once

#include "accrue/core/host_device.h"

#include <cstdint>

namespace accrue::kernels {

/// One dimension: output i sees input i * stride - padding + tap * dilation for each tap of `size`.
struct SlidingAxis {
  std::int64_t in = 0, out = 0;
  std::int64_t size = 1, stride = 1, padding = 0, dilation = 1;

  struct Range {
    std::int64_t begin = 0, end = 0;
  };

  /// The input that output 0 sees at a tap; negative in the padding.
  ACCRUE_HD std::int64_t offset(std::int64_t tap) const { return tap * dilation - padding; }

  /// The outputs in [begin, end) that see an input, not padding, at a tap. If none does, an empty
  /// range within [begin, end].
  ACCRUE_HD Range outputs_of(std::int64_t tap, std::int64_t begin, std::int64_t end) const {
    const std::int64_t at = offset(tap), last = in - 1 - at;
    const std::int64_t first = at < 0 ? (stride - 1 - at) / stride : 0;
    const std::int64_t behind = last < 0 ? 0 : last / stride + 1;
    Range range{begin > first ? begin : first, end < behind ? end : behind};
    if (range.begin > end) range.begin = end;
    if (range.end < range.begin) range.end = range.begin;
    return range;
  }
};

/// Both dimensions of an image.
struct Sliding {
  SlidingAxis h, w;

  ACCRUE_HD std::int64_t inputs() const { return h.in * w.in; }
  ACCRUE_HD std::int64_t outputs() const { return h.out * w.out; }
  ACCRUE_HD std::int64_t taps() const { return h.size * w.size; }
};

}  // namespace accrue::kernels
