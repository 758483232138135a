// The line that --hex adds: the bits of weights.
#pragma once

#include "accrue/core/bits.h"
#include "accrue/core/tensor.h"

#include <fmt/format.h>

namespace accrue::bench {

/// Prints `hex` and eight digits for each element of a float32 tensor.
inline void print_hex_line(const Tensor& weights) {
  fmt::print("hex");
  for (const float weight : weights.to_vector<float>()) fmt::print(" {}", hex8(weight));
  fmt::print("\n");
}

}  // namespace accrue::bench
