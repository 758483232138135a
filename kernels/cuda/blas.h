// Blas: matrix products by cuBLAS, for the speed modes of MatmulPrecision.
#pragma once

#include "accrue/kernels/cuda/stream.h"
#include "accrue/kernels/matrix.h"

#include <cstdint>

namespace accrue::kernels::cuda {

/// Speed modes round the operands and sum in float32, in an order of cuBLAS's choice: their bits
/// depend on shapes and machines, and are no part of the contract.
enum class MatmulPrecision : std::uint8_t {
  ieee,  ///< as float32
  tf32,  ///< operands of 10 bits of fraction
  bf16,  ///< operands of 7 bits of fraction
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
