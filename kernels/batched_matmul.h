// Matrix products over leading dimensions.
#pragma once

#include "accrue/core/matmul_precision.h"
#include "accrue/core/tensor.h"

namespace accrue::kernels {

/// c[..., :, :] = a[..., :, :] b[..., :, :].
///
/// Shapes:  a [..., M, K], b [..., K, N], c [..., M, N] contiguous; equal leading dimensions
/// (expand
///          first) and dtypes. a and b may have any strides.
/// Order:   per output one chain over K ascending from +0.
struct BatchedMatmul {
  static constexpr const char* kName = "matmul";
  Tensor a, b, c;
  MatmulPrecision precision = MatmulPrecision::ieee;  ///< another: on CUDA devices, in any order
};

void launch_cpu(const BatchedMatmul& args);

}  // namespace accrue::kernels
