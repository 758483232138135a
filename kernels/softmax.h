// Softmax and its logarithm along rows: arguments, formulas, order of sums.
#pragma once

#include "accrue/kernels/matrix.h"

namespace accrue::kernels {

enum class SoftmaxKind : unsigned char { plain, log };

/// plain: y = exp(x - m) / s.  log: y = (x - m) - log(s).
///
/// m = max_in_order(x), s = sum_in_order(exp(x - m)) of core/sum_order.h. A row that holds NaN or
/// +inf, or nothing but -inf, becomes NaN.
///
/// Shapes:  x, y [N, C] with col_stride 1; y may be x.
/// Errors:  ShapeError.
template <class T>
struct SoftmaxForward {
  static constexpr const char* kName = "softmax";
  SoftmaxKind kind = SoftmaxKind::plain;
  Matrix<const T> x;
  Matrix<T> y;
};

/// plain: dx = y * (dy - k), k = the sum of dy * y in the order of core/sum_order.h by
/// fma(dy, y, partial).  log: dx = fma(-exp(y), k, dy), k = sum_in_order(dy).
///
/// Shapes:  y, dy, dx [N, C] with col_stride 1; dx may be dy.
/// Errors:  ShapeError.
template <class T>
struct SoftmaxBackward {
  static constexpr const char* kName = "softmax_backward";
  SoftmaxKind kind = SoftmaxKind::plain;
  Matrix<const T> y, dy;
  Matrix<T> dx;
};

template <class T>
void launch_cpu(const SoftmaxForward<T>& args);
template <class T>
void launch_cpu(const SoftmaxBackward<T>& args);

}  // namespace accrue::kernels
