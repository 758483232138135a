// Copies between tensors of any layout and dtype, and fills: what core does itself on the CPU.
#pragma once

#include "accrue/core/tensor.h"

namespace accrue::kernels {

/// y = x, converted as Tensor::to converts: to integers truncates toward zero, to floats rounds to
/// nearest, to bool is `!= 0`. Equal dtypes keep their bits.
///
/// Shapes:  x and y alike, any layouts and dtypes; y does not overlap x.
/// Errors:  ShapeError; StateError when elements of y share one location; ValueError where an
///          integer type does not hold a value, whose element is then 0.
struct Copy {
  static constexpr const char* kName = "to";
  const Tensor& x;
  Tensor& y;
};

/// y = value.
///
/// Errors:  ValueError when the value does not fit the dtype; StateError as Copy.
struct Fill {
  static constexpr const char* kName = "fill";
  Tensor& y;
  double value;
};

}  // namespace accrue::kernels
