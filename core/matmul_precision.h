// MatmulPrecision: how precisely CUDA devices multiply matrices of float32.
#pragma once

#include <atomic>
#include <cstdint>

namespace accrue {

/// The speed modes round operands for tensor cores and add up in float32, in an order of cuBLAS's
/// choice: their bits depend on shapes and machines and are no part of the contract. Operands that
/// Autocast rounded stay as they are: bfloat16 in both modes, float16 in tf32.
enum class MatmulPrecision : std::uint8_t {
  ieee,  ///< as float32; keeps the contract
  tf32,  ///< operands of 10 bits of fraction
  bf16,  ///< operands of 7 bits of fraction
};

namespace detail {
inline std::atomic<MatmulPrecision> the_matmul_precision = MatmulPrecision::ieee;
}

/// torch's set_float32_matmul_precision, for the products that start from now on, in forward and
/// backward passes of all threads: linear, linear_cross_entropy and matmul with their gradients.
/// The CPU ignores it, and so do products whose layouts cuBLAS does not take. In a speed mode rows
/// whose gradient is zero are multiplied too: infinite inputs in padding become NaN.
inline void set_matmul_precision(MatmulPrecision precision) {
  detail::the_matmul_precision = precision;
}
inline MatmulPrecision matmul_precision() { return detail::the_matmul_precision; }

}  // namespace accrue
