// Linear layers and matrix products on raw views: arguments and the order of every sum.
//
// N counts rows (sample-major), I inputs, O outputs. The bits of each result equal a plain
// std::fma loop in the order stated, for every shape, stride, number of threads and CPU path.
// Inputs may have any strides. Outputs have col_stride 1, do not overlap inputs, and are never
// read unless a program loads them. In another `precision` CUDA devices need not keep the order.
#pragma once

#include "accrue/core/matmul_precision.h"
#include "accrue/kernels/lane_program.h"
#include "accrue/kernels/matrix.h"

#include <span>

namespace accrue::kernels {

/// y = x w^T + bias.
///
/// Shapes:  x [N, I], w [O, I], bias [O] contiguous or null, y [N, O].
/// Order:   y[n,o] = (chain over i ascending from +0 of fma(x[n,i], w[o,i], acc)) + bias[o].
/// Errors:  ShapeError.
template <class T>
struct LinearForward {
  static constexpr const char* kName = "linear";
  Matrix<const T> x, w;
  const T* bias = nullptr;
  Matrix<T> y;
  MatmulPrecision precision = MatmulPrecision::ieee;
};

/// dx = dy w.
///
/// Shapes:  dy [N, O], w [O, I], dx [N, I].
/// Order:   dx[n,i] = chain over o ascending from +0 of fma(dy[n,o], w[o,i], acc).
/// Errors:  ShapeError.
template <class T>
struct LinearInputGrad {
  static constexpr const char* kName = "linear_input_grad";
  Matrix<const T> dy, w;
  Matrix<T> dx;
  MatmulPrecision precision = MatmulPrecision::ieee;
};

/// The weight's gradient dy^T x, chained and merged as a lane program says.
///
/// Shapes:  dy [N, O], x [N, I], each buffer [O, I] contiguous.
/// Order:   element (o, i) runs `program` over rows n with fma(dy[n,o], x[n,i], acc). Rows of dy
///          that are all zero are skipped, so 0 * inf adds nothing (contract 5).
/// Errors:  ShapeError; IndexError and ValueError of check_lane_program.
template <class T>
struct LinearWeightGrad {
  static constexpr const char* kName = "linear_weight_grad";
  Matrix<const T> dy, x;
  LaneProgram program;
  std::span<T* const> buffers;  ///< program.num_buffers of them
  MatmulPrecision precision = MatmulPrecision::ieee;
};

/// The bias's gradient: the column sums of dy, chained and merged as a lane program says.
///
/// Shapes:  dy [N, O], each buffer [O] contiguous.
/// Order:   element o runs `program` over rows n with fma(dy[n,o], 1, acc) = acc + dy[n,o]. Rows of
///          dy that are all zero are skipped (contract 5).
/// Errors:  as LinearWeightGrad.
template <class T>
struct LinearBiasGrad {
  static constexpr const char* kName = "linear_bias_grad";
  Matrix<const T> dy;
  LaneProgram program;
  std::span<T* const> buffers;  ///< program.num_buffers of them
};

/// c = a b.
///
/// Shapes:  a [M, K], b [K, N], c [M, N]. K = 0 gives +0.
/// Order:   c[m,n] = chain over k ascending from +0 of fma(a[m,k], b[k,n], acc).
/// Errors:  ShapeError.
template <class T>
struct Matmul {
  static constexpr const char* kName = "matmul";
  Matrix<const T> a, b;
  Matrix<T> c;
  MatmulPrecision precision = MatmulPrecision::ieee;
};

// T is float (the bit contract, fast) or double (plain loops, for gradient checks).
template <class T>
void launch_cpu(const LinearForward<T>& args);
template <class T>
void launch_cpu(const LinearInputGrad<T>& args);
template <class T>
void launch_cpu(const LinearWeightGrad<T>& args);
template <class T>
void launch_cpu(const LinearBiasGrad<T>& args);
template <class T>
void launch_cpu(const Matmul<T>& args);

}  // namespace accrue::kernels
