// Cross-entropy of logits and class indices, row by row: arguments, formulas, order of sums.
//
// One row x of C logits with target t, in exactly these operations (T is float or double):
//   m     = max_in_order(x)                             core/sum_order.h
//   s     = sum_in_order(exp(x_c - m))
//   nll_c = log(s) - (x_c - m)
//   a     = T(1 - label_smoothing), b = T(label_smoothing / C), both rounded once from double
//   loss  = (a * w_t) * nll_t, then, only with smoothing, fma(b, sum_in_order(w_c * nll_c), loss)
//   p_c   = exp(x_c - m) / s
//   u_c   = (p_c - [c = t]) * (a * w_t), then, only with smoothing,
//           fma(b, fma(p_c, sum_in_order(w), -w_c), u_c)
//   dx_c  = u_c * dloss
// w is 1 without class weights. A term of weight 0 is left out, so 0 * inf never arises. A row with
// t = ignore_index, or with a * w_t = 0 and no smoothing, has loss +0 and dx +0 whatever it holds.
// Results at the edges: C = 1 gives 0; x_t = -inf gives +inf; +inf, NaN or a row of -inf give NaN;
// logits of any finite size do not overflow before the difference x_t - m does.
#pragma once

#include "accrue/kernels/matrix.h"

#include <cstdint>

namespace accrue::kernels {

/// What both directions read. Targets are checked before any other memory is touched.
template <class T>
struct CrossEntropyInputs {
  Matrix<const T> logits;                ///< [N, C], col_stride 1, C >= 1
  const std::int64_t* target = nullptr;  ///< [N] contiguous, class indices or ignore_index
  const T* class_weights = nullptr;      ///< [C] contiguous, or null for ones
  std::int64_t ignore_index = -100;      ///< may lie inside [0, C) or outside
  double label_smoothing = 0;            ///< in [0, 1]
};

/// Row losses, not reduced, and the statistics that the backward pass reads.
///
/// Errors:  IndexError (a target), ShapeError (layout, C = 0 with rows), ValueError (smoothing).
/// Cost:    two passes over logits, a third with smoothing.
template <class T>
struct CrossEntropyForward {
  static constexpr const char* kName = "cross_entropy";
  CrossEntropyInputs<T> in;
  T* loss = nullptr;     ///< [N]
  T* row_max = nullptr;  ///< [N] m; not written for ignored rows
  T* row_sum = nullptr;  ///< [N] s; not written for ignored rows
};

/// dlogits from the gradients of the row losses. dlogits may be the logits themselves.
///
/// Errors:  as CrossEntropyForward.
template <class T>
struct CrossEntropyBackward {
  static constexpr const char* kName = "cross_entropy";
  CrossEntropyInputs<T> in;
  const T* row_max = nullptr;     ///< of the forward pass
  const T* row_sum = nullptr;     ///< of the forward pass
  const T* dloss = nullptr;       ///< [N], or one value with dloss_stride 0
  std::int64_t dloss_stride = 1;  ///< in elements
  Matrix<T> dlogits;              ///< [N, C], col_stride 1
};

/// Checks that each of `count` targets lies in [0, num_classes) or is `ignore_index`.
///
/// Errors:  IndexError with the first bad value and its index.
void check_targets(const std::int64_t* target,
                   std::int64_t count,
                   std::int64_t num_classes,
                   std::int64_t ignore_index);

template <class T>
void launch_cpu(const CrossEntropyForward<T>& args);
template <class T>
void launch_cpu(const CrossEntropyBackward<T>& args);

}  // namespace accrue::kernels
