// Layouts: where the elements of one shape lie in each of N operands of any strides.
#pragma once

#include "accrue/core/shape.h"
#include "accrue/kernels/cuda/platform.h"

#include <array>

namespace accrue::kernels::cuda {

/// What an element's index is worth in each operand.
template <int N>
struct Offsets {
  std::int64_t at[N] = {};

  ACCRUE_DEVICE std::int64_t operator[](int n) const { return at[n]; }
};

/// i / size and i % size, by the short division where it will do.
ACCRUE_DEVICE std::int64_t divide(std::int64_t i, std::int64_t size, std::int64_t& rest) {
  if ((i | size) >> 32 == 0) {
    const auto narrow = static_cast<std::uint32_t>(i), divisor = static_cast<std::uint32_t>(size);
    rest = narrow % divisor;
    return narrow / divisor;
  }
  rest = i % size;
  return i / size;
}

/// Sizes and strides, innermost first; neighbouring dimensions that all operands allow are one.
template <int N>
struct Layouts {
  std::int64_t count = 1;
  int rank = 0;
  std::int64_t size[kMaxRank] = {};
  std::int64_t stride[N][kMaxRank] = {};

  Layouts() = default;
  Layouts(const Shape& shape, const std::array<Shape, N>& strides) {
    for (int d = shape.rank() - 1; d >= 0; --d) {
      count *= shape[d];
      if (shape[d] == 1) continue;
      bool continues = rank > 0;
      for (int n = 0; n < N; ++n) {
        const std::int64_t step = strides[static_cast<std::size_t>(n)][d];
        continues = continues && step == size[rank - 1] * stride[n][rank - 1];
      }
      if (continues) {
        size[rank - 1] *= shape[d];
      } else {
        for (int n = 0; n < N; ++n) stride[n][rank] = strides[static_cast<std::size_t>(n)][d];
        size[rank++] = shape[d];
      }
    }
  }

  ACCRUE_DEVICE Offsets<N> offsets(std::int64_t i) const {
    Offsets<N> out;
    for (int d = 0; d < rank; ++d) {
      std::int64_t position = i;
      if (d + 1 < rank) i = divide(i, size[d], position);
      ACCRUE_UNROLL
      for (int n = 0; n < N; ++n) out.at[n] += position * stride[n][d];
    }
    return out;
  }
};

}  // namespace accrue::kernels::cuda
