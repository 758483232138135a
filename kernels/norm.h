// Size checks of gradients: sum of squares, largest magnitude, elements that are not finite.
//
// Tensors are float32 or float64 in any layout; elements count in row-major order.
#pragma once

#include "accrue/core/tensor.h"

#include <cstdint>
#include <span>

namespace accrue::kernels {

/// The sum of x^2 of several tensors, in double (contract 15). Squares of floats are exact and
/// cannot overflow. A device is waited for once.
///
/// Order:   of a tensor acc + double(x) * double(x) in the order of core/sum_order.h, +0 without
///          elements; then start + tensors left to right.
/// Errors:  DTypeError.
struct SquareSum {
  static constexpr const char* kName = "square_sum";
  std::span<const Tensor> tensors;
  double start = 0;
};
double launch_cpu(const SquareSum& args);

/// The largest |x| of several tensors: NaN if any element is NaN, +0 for no elements. A device is
/// waited for once.
///
/// Errors:  DTypeError.
struct MaxAbs {
  static constexpr const char* kName = "max_abs";
  std::span<const Tensor> tensors;
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
