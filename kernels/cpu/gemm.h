// The CPU matrix product: each output element runs a program over the summed index k.
//
// gemm() splits the outputs over threads and k into blocks; the ISA_SOURCES functions below compute
// one thread's rectangle. Whatever the split, an element sees its instructions in order, so its
// bits equal a plain loop.
#pragma once

#include "accrue/kernels/lane_program.h"
#include "accrue/kernels/matrix.h"

#include <cstdint>
#include <span>

namespace accrue::kernels {

/// Where a slot's [M, N] values lie, with col_stride 1. A bias is a slot of row_stride 0.
template <class T>
struct GemmSlot {
  T* data = nullptr;
  std::int64_t row_stride = 0;
};

/// The part of a program whose chains lie in the rows [begin, end) of k; they count from `begin`.
struct GemmBlock {
  std::int64_t begin = 0, end = 0;
  std::span<const LaneInstruction> instructions;
};

/// A product of a [M, K] and b [K, N] whose elements run blocks of instructions one after another;
/// `chain` is fma(a[m,k], b[k,n], acc) over ascending k.
template <class T>
struct Gemm {
  Matrix<const T> a, b;
  std::span<const GemmSlot<T>> buffers;
  std::int32_t num_scratch = 0;
  std::span<const GemmBlock> blocks;
};

/// The outputs [row_begin, row_end) x [col_begin, col_end).
struct Rectangle {
  std::int64_t row_begin = 0, row_end = 0, col_begin = 0, col_end = 0;
};

/// Runs `program` on every output of a times b, on all threads.
///
/// `live`, unless null, holds a byte for each k: chains skip the k whose byte is 0.
template <class T>
void gemm(Matrix<const T> a,
          Matrix<const T> b,
          std::span<const GemmSlot<T>> buffers,
          const LaneProgram& program,
          const std::uint8_t* live = nullptr);

// One thread's share. gemm_tiles needs gemm_workspace() floats, aligned to 64 bytes; gemm_elements
// is the plain loop for small products and for double, and takes a single block.
namespace portable {
std::int64_t gemm_workspace(const Gemm<float>& gemm, const Rectangle& part);
void gemm_tiles(const Gemm<float>& gemm, const Rectangle& part, float* workspace);
void gemm_elements(const Gemm<float>& gemm, const Rectangle& part);
void gemm_elements(const Gemm<double>& gemm, const Rectangle& part);
}  // namespace portable
namespace avx2 {
std::int64_t gemm_workspace(const Gemm<float>& gemm, const Rectangle& part);
void gemm_tiles(const Gemm<float>& gemm, const Rectangle& part, float* workspace);
void gemm_elements(const Gemm<float>& gemm, const Rectangle& part);
void gemm_elements(const Gemm<double>& gemm, const Rectangle& part);
}  // namespace avx2

}  // namespace accrue::kernels
