// Elements picked by an index tensor along one dimension, and their gradients added back.
//
// Any layouts. `index` is int64 with the rank of x; all of it is checked before an element of x is
// touched.
#pragma once

#include "accrue/core/tensor.h"

namespace accrue::kernels {

/// y[i, j, k] = x[i, index[i, j, k], k] for dim = 1, and so on. Any dtype of x.
///
/// Shapes:  y as index; index at most as large as x in the other dimensions.
/// Errors:  IndexError with value and position; ShapeError, DTypeError naming `operation`;
///          StateError when elements of y share one location.
struct Gather {
  const char* operation;
  const Tensor& x;
  int dim;  ///< in [0, rank); 0 for rank 0
  const Tensor& index;
  Tensor& y;
};
void launch_cpu(const Gather& args);

/// dx[i, index[i, j, k], k] += dy[i, j, k] for dim = 1, and so on; float32 or float64.
///
/// Order:   each element of dx adds its gradients one by one in ascending row-major order of dy.
/// Errors:  as Gather.
struct ScatterAdd {
  const char* operation;
  const Tensor& dy;
  int dim;
  const Tensor& index;
  Tensor& dx;
};
void launch_cpu(const ScatterAdd& args);

}  // namespace accrue::kernels
