// The CPU matrix product: each output element runs a lane program over the summed index k.
//
// gemm() takes the plain loop for small products. Otherwise it splits the outputs over threads and
// k into blocks, and the program into steps that register tiles run. Whatever the split, an element
// sees its operations in order, so its bits equal a plain loop.
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

/// A product of a [M, K] and b [K, N]; `chain` is fma(a[m,k], b[k,n], acc) over ascending k.
template <class T>
struct Gemm {
  Matrix<const T> a, b;
  std::span<const GemmSlot<T>> buffers;
  LaneProgram program;
  const std::uint8_t* live = nullptr;  ///< unless null a byte for each k: chains skip 0
};

/// Runs the program on all outputs, on all threads.
template <class T>
void gemm(const Gemm<T>& gemm);

/// Operations of a program in the order in which lanes use them, any of which may be absent: a tile
/// runs it with a few predictable branches.
struct GemmStep {
  enum class Start : std::uint8_t { keep, zero, load };
  static constexpr int kMaxMerges = 4;

  Start start = Start::keep;
  bool closes = false;
  bool merges_held = false;  ///< before the others, the sum that the last step held
  bool holds = false;        ///< keeps acc for the next step's chain to end in it
  std::int8_t num_merges = 0;
  std::int32_t load = 0;
  std::int32_t begin = 0, end = 0;  ///< of the chain, counted from the block's begin
  std::int32_t merges[kMaxMerges] = {};
  std::int32_t store = -1;
};

/// The steps whose chains lie in the rows [begin, end) of k.
struct GemmBlock {
  std::int64_t begin = 0, end = 0;
  std::span<const GemmStep> steps;
};

/// A program as tiles run it: blocks one after another.
struct GemmBlocks {
  std::span<const GemmBlock> blocks;
  std::int32_t num_scratch = 0;
};

/// The outputs [row_begin, row_end) x [col_begin, col_end).
struct Rectangle {
  std::int64_t row_begin = 0, row_end = 0, col_begin = 0, col_end = 0;
};

// gemm_tiles needs gemm_workspace() floats, aligned to 64 bytes.
namespace portable {
void gemm_elements(const Gemm<float>& gemm);
void gemm_elements(const Gemm<double>& gemm);
std::int64_t gemm_workspace(const GemmBlocks& program, const Rectangle& part);
void gemm_tiles(const Gemm<float>& gemm,
                const GemmBlocks& program,
                const Rectangle& part,
                float* workspace);
}  // namespace portable
namespace avx2 {
void gemm_elements(const Gemm<float>& gemm);
void gemm_elements(const Gemm<double>& gemm);
std::int64_t gemm_workspace(const GemmBlocks& program, const Rectangle& part);
void gemm_tiles(const Gemm<float>& gemm,
                const GemmBlocks& program,
                const Rectangle& part,
                float* workspace);
}  // namespace avx2
namespace avx512 {
void gemm_elements(const Gemm<float>& gemm);
void gemm_elements(const Gemm<double>& gemm);
std::int64_t gemm_workspace(const GemmBlocks& program, const Rectangle& part);
void gemm_tiles(const Gemm<float>& gemm,
                const GemmBlocks& program,
                const Rectangle& part,
                float* workspace);
}  // namespace avx512

}  // namespace accrue::kernels
