// Dropout masks that depend on where an element lies in its sample (contract 17).
#pragma once

#include "accrue/core/tensor.h"

#include <cmath>
#include <cstdint>

namespace accrue::kernels {

/// mask = scale where an element is kept, else +0.
///
/// Dimension 0 of the mask holds `rows` entries for each sample. Sample s of the mask is at
/// `first_position + s` of the window; an element's coordinates are its row in the sample and its
/// indices in the other dimensions. It is kept when the number of CounterGenerator(seed, window,
/// position, stream) at these coordinates is below 1 - p.
///
/// Shapes:  mask of rank >= 1, contiguous.
/// Order:   scale = 1 / T(1 - p), rounded as written; 0 for p = 1.
struct DropoutMask {
  static constexpr const char* kName = "dropout";
  double p = 0;
  std::uint64_t seed = 0, window = 0, first_position = 0, stream = 0;
  std::int64_t rows = 1;
  Tensor mask;
};

/// What kept elements are multiplied with.
template <class T>
T dropout_scale(double p) {
  return p < 1 ? T(1) / static_cast<T>(1 - p) : T(0);
}

/// The smallest multiple of 2^-24 that is not below 1 - p: a number, which is such a multiple too,
/// is below both or neither.
inline float dropout_limit(double p) {
  return static_cast<float>(std::ceil((1 - p) * 0x1p24)) * 0x1p-24f;
}

void launch_cpu(const DropoutMask& args);

}  // namespace accrue::kernels
