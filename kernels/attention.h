// Scaled dot-product attention: arguments, formulas, order of sums.
//
// For each index of the leading dimensions, with query row i and keys j in [0, n_i), where n_i is
// i + 1 for causal attention and S otherwise:
//   s_ij = (chain over d of fma(q_id, k_jd, acc)) * scale      scale = T(1 / sqrt(D)) unless given
//   w_i  = softmax(s_i) over its n_i elements                  kernels/softmax.h
//   y_ie = chain over j of fma(w_ij, v_je, acc)
// and backward
//   p_ij  = chain over e of fma(dy_ie, v_je, acc)
//   t_ij  = (w_ij * (p_ij - sum_j fma(p_ij, w_ij, partial))) * scale      softmax's backward
//   dq_id = chain over j of fma(t_ij, k_jd, acc)
//   dk_jd = chain over i of fma(t_ij, q_id, acc)     dv_je = chain over i of fma(w_ij, dy_ie, acc)
// Every chain ascends from +0. These are the bits of matmul, times, softmax, matmul on the keys
// that a row may see; keys behind them are not read, so padding on the right of a causal sequence
// changes nothing, whatever it holds.
// Memory: blocks of rows against all keys, O(S) per thread; nothing of size T * S.
#pragma once

#include "accrue/core/tensor.h"

namespace accrue::kernels {

/// Shapes:  q [..., T, D], k [..., S, D], v [..., S, E], y [..., T, E] contiguous; equal leading
///          dimensions and dtypes; causal needs T = S. q, k and v may have any strides.
struct AttentionForward {
  static constexpr const char* kName = "scaled_dot_product_attention";
  Tensor q, k, v;
  bool causal = false;
  double scale = 1;
  Tensor y;
};

/// Gradients; undefined tensors are not written. Shapes: as forward, dq, dk and dv contiguous.
struct AttentionBackward {
  static constexpr const char* kName = "scaled_dot_product_attention";
  Tensor q, k, v;
  bool causal = false;
  double scale = 1;
  Tensor dy;
  Tensor dq, dk, dv;
};

void launch_cpu(const AttentionForward& args);
void launch_cpu(const AttentionBackward& args);

}  // namespace accrue::kernels
