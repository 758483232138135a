// Size checks of gradients: sum of squares, largest magnitude, elements that are not finite.
//
// Tensors are float32 or float64 in any layout; elements count in row-major order.
#pragma once

#include "accrue/core/tensor.h"

#include <cstdint>
#include <span>

namespace accrue::kernels {

/// The sum of x^2, in double (contract 15). Squares of floats are exact and cannot overflow.
///
/// Order:   acc + double(x) * double(x) in the order of core/sum_order.h. No elements give +0.
/// Errors:  DTypeError.
struct SquareSum {
  static constexpr const char* kName = "square_sum";
  const Tensor& x;
};
double launch_cpu(const SquareSum& args);

/// The largest |x|: NaN if any element is NaN, +0 for no elements.
///
/// Errors:  DTypeError.
struct MaxAbs {
  static constexpr const char* kName = "max_abs";
  const Tensor& x;
};
double launch_cpu(const MaxAbs& args);

/// The first of several tensors that has elements that are NaN or infinite; how many, and where.
struct Nonfinite {
  std::int64_t tensor = -1;  ///< -1 when all elements are finite
  std::int64_t count = 0;
  std::int64_t first = -1;  ///< row-major index
};

/// A device is waited for once.
/// Errors:  DTypeError.
struct FindNonfinite {
  static constexpr const char* kName = "find_nonfinite";
  std::span<const Tensor> tensors;
};
Nonfinite launch_cpu(const FindNonfinite& args);

}  // namespace accrue::kernels
