// Blas: matrix products by cuBLAS, for the speed modes of MatmulPrecision.
#pragma once

#include "accrue/kernels/cuda/stream.h"
#include "accrue/kernels/matmul_precision.h"
#include "accrue/kernels/matrix.h"

namespace accrue::kernels::cuda {

/// A handle of cuBLAS on the device that is current.
/// Threads: one at a time.
class Blas {
 public:
  /// Errors: DeviceError naming the call that failed and what to do.
  Blas();
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  /// Queues c = a b, or c += a b. False, with nothing done, where cuBLAS does not take the layouts:
  /// neither rows nor columns dense, or sizes and strides of 2^31 and more.
  /// Errors: DeviceError.
  bool multiply(MatmulPrecision precision,
                Matrix<const float> a,
                Matrix<const float> b,
                Matrix<float> c,
                bool adds,
                Stream stream);

 private:
  void* handle_ = nullptr;
};

}  // namespace accrue::kernels::cuda
