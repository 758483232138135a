// Sums over dimensions of a tensor view.
#pragma once

#include "accrue/core/tensor.h"

#include <cstdint>

namespace accrue::kernels {

/// y = the sum of x over some of its dimensions.
///
/// Shapes:  x float32 or float64; y of x's dtype with the dimensions that are not in `dims`. Any
///          layouts; y does not overlap x.
/// Order:   the elements of one sum, in row-major order of the summed dimensions, by
///          core/sum_order.h (contract 11), whichever dimensions they are. A sum of nothing is +0.
/// Errors:  ShapeError, DTypeError; StateError when elements of y share one location.
/// Cost:    a dense copy of x where the layout offers no matrix of kept and summed elements.
struct SumDims {
  static constexpr const char* kName = "sum";
  const Tensor& x;
  std::uint32_t dims;  ///< bit d is set if dimension d is summed
  Tensor& y;
  bool squares = false;  ///< sums the squares, each rounded
};
void launch_cpu(const SumDims& args);

}  // namespace accrue::kernels
