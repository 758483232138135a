// Layer and root-mean-square normalisation of rows: arguments, formulas, order of sums.
//
// One row x of C elements, T is float or double, every line rounds as it is written:
//   layer:  mean = sum_in_order(x) / C
//           v    = accumulate_in_order(fma(x_c - mean, x_c - mean, acc)) / C
//   rms:    mean = 0, and v = accumulate_in_order(fma(x_c, x_c, acc)) / C
//   rstd = 1 / sqrt(v + T(eps)), both correctly rounded
//   n_c  = (x_c - mean) * rstd, for rms x_c * rstd
//   y_c  = fma(n_c, w_c, b_c); n_c * w_c without b, n_c without both
// and with g_c = dy_c * w_c (dy_c without w):
//   k    = accumulate_in_order(fma(g_c, n_c, acc)) / C
//   dx_c = rstd * fma(-n_c, k, g_c - sum_in_order(g) / C); for rms rstd * fma(-n_c, k, g_c)
// The sums are those of core/sum_order.h. No row depends on another.
#pragma once

#include "accrue/kernels/matrix.h"

namespace accrue::kernels {

enum class NormKind : unsigned char { layer, rms };

/// y, and the statistics that the backward pass reads.
///
/// Shapes:  x, y [N, C] with col_stride 1, weight and bias [C] contiguous or null (bias only with
///          weight), mean and rstd [N].
/// Errors:  ShapeError.
template <class T>
struct LayerNormForward {
  static constexpr const char* kName = "layer_norm";
  NormKind kind = NormKind::layer;
  double eps = 0;
  Matrix<const T> x;
  const T* weight = nullptr;
  const T* bias = nullptr;
  Matrix<T> y;
  T* mean = nullptr;
  T* rstd = nullptr;
};

/// dx, and n for the gradient of the weight: the rows of dy * n chained as a lane program says.
///
/// Shapes:  x, dy, dx, n [N, C] with col_stride 1; dx or n may have null data and is not written.
/// Errors:  ShapeError.
template <class T>
struct LayerNormBackward {
  static constexpr const char* kName = "layer_norm_backward";
  NormKind kind = NormKind::layer;
  Matrix<const T> x, dy;
  const T* weight = nullptr;
  const T* mean = nullptr;
  const T* rstd = nullptr;
  Matrix<T> dx, n;
};

template <class T>
void launch_cpu(const LayerNormForward<T>& args);
template <class T>
void launch_cpu(const LayerNormBackward<T>& args);

}  // namespace accrue::kernels
