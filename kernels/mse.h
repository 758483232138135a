// Squared error, row by row: arguments, formulas, order of sums.
#pragma once

#include "accrue/kernels/matrix.h"

#include <cstdint>

namespace accrue::kernels {

/// loss[n] = sum over c of (x[n,c] - y[n,c])^2, neither halved nor divided.
///
/// Shapes:  x, y [N, C] with col_stride 1, loss [N]. C = 0 gives +0.
/// Order:   core/sum_order.h with d = x - y, partial = fma(d, d, partial).
/// Errors:  ShapeError.
template <class T>
struct MseForward {
  static constexpr const char* kName = "mse";
  Matrix<const T> x, y;
  T* loss = nullptr;
};

/// dx = (d + d) * dloss[n] with d = x - y (d + d is exact), dy = -dx.
///
/// Shapes:  x, y, dx, dy [N, C] with col_stride 1; dx or dy may have null data. dloss [N], or one
///          value with dloss_stride 0.
/// Errors:  ShapeError.
template <class T>
struct MseBackward {
  static constexpr const char* kName = "mse";
  Matrix<const T> x, y;
  const T* dloss = nullptr;
  std::int64_t dloss_stride = 1;
  Matrix<T> dx, dy;
};

template <class T>
void launch_cpu(const MseForward<T>& args);
template <class T>
void launch_cpu(const MseBackward<T>& args);

}  // namespace accrue::kernels
