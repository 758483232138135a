// Loops over tensors of any layout: adjacent dimensions are merged and walked run by run.
#pragma once

#include "accrue/core/shape.h"

#include <array>
#include <cstring>

namespace accrue {

/// One innermost run: `count` steps with a stride (in elements) per operand.
template <std::size_t N>
struct StridedRun {
  std::int64_t count;
  std::array<std::int64_t, N> offset;  ///< of the first element, relative to each operand
  std::array<std::int64_t, N> stride;
};

/// Calls `body(run)` so that the runs visit all elements of `shape` in row-major order.
/// `strides` holds one Shape of strides per operand, all of the rank of `shape`.
template <std::size_t N, class Body>
void for_each_run(const Shape& shape, const std::array<Shape, N>& strides, Body&& body) {
  Shape sizes;
  std::array<Shape, N> steps;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 0) return;
    if (shape[d] == 1) continue;
    bool mergeable = sizes.rank() > 0;
    for (std::size_t n = 0; n < N && mergeable; ++n) {
      mergeable = steps[n].back() == strides[n][d] * shape[d];
    }
    const int last = sizes.rank() - 1;
    if (mergeable) {
      sizes[last] *= shape[d];
      for (std::size_t n = 0; n < N; ++n) steps[n][last] = strides[n][d];
    } else {
      sizes.push_back(shape[d]);
      for (std::size_t n = 0; n < N; ++n) steps[n].push_back(strides[n][d]);
    }
  }
  StridedRun<N> run{1, {}, {}};
  const int inner = sizes.rank() - 1;
  if (inner >= 0) run.count = sizes[inner];
  for (std::size_t n = 0; n < N && inner >= 0; ++n) run.stride[n] = steps[n][inner];
  Shape index = sizes;
  for (int d = 0; d < index.rank(); ++d) index[d] = 0;
  while (true) {
    body(static_cast<const StridedRun<N>&>(run));
    int d = inner - 1;
    for (; d >= 0; --d) {
      for (std::size_t n = 0; n < N; ++n) run.offset[n] += steps[n][d];
      if (++index[d] < sizes[d]) break;
      for (std::size_t n = 0; n < N; ++n) run.offset[n] -= steps[n][d] * sizes[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

/// Copies one run of elements of the size of Word.
template <class Word>
void copy_words(std::byte* out, const std::byte* in, const StridedRun<2>& run) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(Word));
  const std::int64_t out_step = run.stride[0] * kSize, in_step = run.stride[1] * kSize;
  for (std::int64_t i = 0; i < run.count; ++i) {
    std::memcpy(out + i * out_step, in + i * in_step, sizeof(Word));
  }
}

/// Copies one run of elements of `size` bytes (1, 2, 4 or 8) from operand 1 (`in`) to operand 0
/// (`out`).
inline void copy_run(std::byte* out,
                     const std::byte* in,
                     const StridedRun<2>& run,
                     std::int64_t size) {
  out += run.offset[0] * size;
  in += run.offset[1] * size;
  if (run.stride[0] == 1 && run.stride[1] == 1) {
    std::memcpy(out, in, static_cast<std::size_t>(run.count * size));
  } else if (size == 4) {
    copy_words<std::uint32_t>(out, in, run);
  } else if (size == 8) {
    copy_words<std::uint64_t>(out, in, run);
  } else if (size == 2) {
    copy_words<std::uint16_t>(out, in, run);
  } else {
    copy_words<std::uint8_t>(out, in, run);
  }
}

}  // namespace accrue
