// What kernels are written with: the same names for nvcc and for the simulator.
//
// A kernel is a function marked ACCRUE_KERNEL(threads), started by launch(). Blocks have one
// dimension of threads; grids have two. In a kernel:
//   thread_index(), num_threads()      in the block
//   block_x(), block_y(), num_blocks_x()
//   ACCRUE_SHARED(T, name, count)      an array that the block shares, aligned to 16 bytes
//   dynamic_shared<T>()                what the launch asks for, of at most max_shared_bytes()
//   ACCRUE_PARAMETER T name            a parameter too large for registers
//   ACCRUE_UNROLL, ACCRUE_UNROLL_BY(n), ACCRUE_NO_UNROLL before a loop
//   sync_block(), sync_warp(lanes)     barriers that order memory
//   shuffle(value, lane), shuffle_xor, shuffle_down, shuffle_up, ballot, any_lane, all_lanes,
//   warp_sum, warp_min, warp_max       for integers; they order no memory
//   load4(p), store4(p, v)             16 bytes; is_aligned4(p) says whether they may
//   stream4(p, v)                      store4 to global memory, in one piece, which caches let go
//   atomic_add(p, n), atomic_max(p, n) integers only: sums of floats would depend on time
// Device code uses no other CUDA function. Its arithmetic is that of kernels/scalar.
#pragma once

#include "accrue/kernels/cuda/stream.h"

#include <cstddef>
#include <cstdint>

namespace accrue::kernels::cuda {

/// The name of a kernel, for errors, and its sizes.
struct Launch {
  const char* name = "";
  std::int64_t grid_x = 1, grid_y = 1;
  int threads = 1;
  std::size_t dynamic_shared = 0;  ///< bytes
  Stream stream = {};
};

inline constexpr int kWarpSize = 32;
inline constexpr unsigned kAllLanes = 0xffffffffU;

struct alignas(16) Float4 {
  float v[4];
};

}  // namespace accrue::kernels::cuda

#ifdef __CUDACC__
#include "accrue/kernels/cuda/platform_nvcc.cuh"
#else
#include "accrue/kernels/cuda/platform_simulated.h"
#endif

#include "accrue/kernels/cuda/workspace.h"
