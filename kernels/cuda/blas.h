// Blas: matrix products by cuBLAS, for the speed modes of MatmulPrecision.
#pragma once

#include "accrue/core/matmul_precision.h"
#include "accrue/kernels/cuda/stream.h"
#include "accrue/kernels/matrix.h"

#include <cstdint>

namespace accrue::kernels::cuda {

/// c = a b, or c += a b, or a batch of such.
struct BlasProduct {
  Matrix<const float> a, b;
  Matrix<float> c;
  bool adds = false;
  std::int64_t batch = 1;
  /// How many elements the matrices of a product lie behind those of the one before.
  std::int64_t a_step = 0, b_step = 0, c_step = 0;
};

/// A handle of cuBLAS on the device that is current.
/// Threads: one at a time.
class Blas {
 public:
  /// Errors: DeviceError naming the call that failed and what to do.
  Blas();
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  /// Whether cuBLAS takes the layouts: rows or columns are dense, sizes and strides below 2^31.
  static bool takes(const BlasProduct& product);
  /// Queues a product. False, with nothing done, unless takes(product).
  /// Errors: DeviceError.
  bool multiply(MatmulPrecision precision, const BlasProduct& product, Stream stream);

 private:
  void* handle_ = nullptr;
};

/// Blas::multiply() by a handle of the current device that all threads share. False for ieee too.
/// Threads: safe. Errors: DeviceError.
bool multiply_by_blas(MatmulPrecision precision, const BlasProduct& product, Stream stream);

}  // namespace accrue::kernels::cuda
