// Sums along rows: arguments and order.
#pragma once

#include "accrue/kernels/matrix.h"

namespace accrue::kernels {

/// sum[n] = x[n,0] + ... + x[n,C-1] in the order of core/sum_order.h.
///
/// Shapes:  x [N, C] with any strides, sum [N]. C = 0 gives +0.
/// Errors:  ShapeError.
template <class T>
struct RowSum {
  static constexpr const char* kName = "row_sum";
  Matrix<const T> x;
  T* sum = nullptr;
  bool squares = false;  ///< sums the squares, each rounded
};

template <class T>
void launch_cpu(const RowSum<T>& args);

}  // namespace accrue::kernels
