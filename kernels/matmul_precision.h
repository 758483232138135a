// MatmulPrecision: how exactly matrix products of float32 are formed on CUDA devices.
#pragma once

#include <cstdint>

namespace accrue::kernels {

/// Speed modes round the operands and sum in float32, in an order of cuBLAS's choice: their bits
/// depend on shapes and machines, and are no part of the contract (contract 19).
enum class MatmulPrecision : std::uint8_t {
  ieee,  ///< the contract's chains, on every device
  tf32,  ///< operands of 10 bits of fraction
  bf16,  ///< operands of 7 bits of fraction
};

/// Of the calling thread; ieee until it is set. Only kernels for CUDA read it.
inline MatmulPrecision& matmul_precision() {
  thread_local MatmulPrecision precision = MatmulPrecision::ieee;
  return precision;
}

}  // namespace accrue::kernels
