// Maxima and minima along one dimension, with their places.
#pragma once

#include "accrue/core/tensor.h"

namespace accrue::kernels {

/// values = the largest (or smallest) elements of x along `dim`, indices = where they lie.
///
/// A NaN wins over every number; of equal elements (+0 and -0 too) the first is taken.
///
/// Shapes:  x float32 or float64, any layout; values of x's dtype and indices int64, both
/// contiguous
///          with x's shape without `dim`.
/// Errors:  IndexError for a dimension of size 0; ShapeError, DTypeError.
struct Extremum {
  const char* operation;
  bool largest;
  const Tensor& x;
  int dim;  ///< in [0, rank); 0 for rank 0
  Tensor &values, &indices;
};
void launch_cpu(const Extremum& args);

}  // namespace accrue::kernels
