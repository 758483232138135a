// The names of platform.h for nvcc and the CUDA runtime.
#pragma once

#include "accrue/core/host_device.h"
#include "accrue/kernels/cuda/check.h"

#include <cuda_runtime.h>

#include <type_traits>
#include <utility>

#define ACCRUE_KERNEL(threads) __global__ __launch_bounds__(threads)
#define ACCRUE_DEVICE __device__ __forceinline__
#define ACCRUE_PARAMETER const __grid_constant__
#define ACCRUE_UNROLL _Pragma("unroll")
#define ACCRUE_PRAGMA(text) _Pragma(#text)
#define ACCRUE_UNROLL_BY(n) ACCRUE_PRAGMA(unroll n)
#define ACCRUE_NO_UNROLL _Pragma("unroll 1")
#define ACCRUE_SHARED(T, name, count) __shared__ __align__(16) T name[count]

namespace accrue::kernels::cuda {

ACCRUE_DEVICE int thread_index() { return static_cast<int>(threadIdx.x); }
ACCRUE_DEVICE int num_threads() { return static_cast<int>(blockDim.x); }
ACCRUE_DEVICE int block_x() { return static_cast<int>(blockIdx.x); }
ACCRUE_DEVICE int block_y() { return static_cast<int>(blockIdx.y); }
ACCRUE_DEVICE int num_blocks_x() { return static_cast<int>(gridDim.x); }

template <class T>
ACCRUE_DEVICE T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char dynamic_shared_memory[];
  return reinterpret_cast<T*>(dynamic_shared_memory);
}

ACCRUE_DEVICE void sync_block() { __syncthreads(); }
ACCRUE_DEVICE void sync_warp(unsigned lanes = kAllLanes) { __syncwarp(lanes); }

template <class T>
ACCRUE_DEVICE T shuffle(T value, int lane, unsigned lanes = kAllLanes, int width = kWarpSize) {
  return __shfl_sync(lanes, value, lane, width);
}
template <class T>
ACCRUE_DEVICE T
shuffle_up(T value, int distance, unsigned lanes = kAllLanes, int width = kWarpSize) {
  return __shfl_up_sync(lanes, value, static_cast<unsigned>(distance), width);
}
template <class T>
ACCRUE_DEVICE T
shuffle_down(T value, int distance, unsigned lanes = kAllLanes, int width = kWarpSize) {
  return __shfl_down_sync(lanes, value, static_cast<unsigned>(distance), width);
}
template <class T>
ACCRUE_DEVICE T shuffle_xor(T value, int mask, unsigned lanes = kAllLanes, int width = kWarpSize) {
  return __shfl_xor_sync(lanes, value, mask, width);
}

ACCRUE_DEVICE unsigned ballot(bool vote, unsigned lanes = kAllLanes) {
  return __ballot_sync(lanes, vote);
}
ACCRUE_DEVICE bool any_lane(bool vote, unsigned lanes = kAllLanes) {
  return __any_sync(lanes, vote) != 0;
}
ACCRUE_DEVICE bool all_lanes(bool vote, unsigned lanes = kAllLanes) {
  return __all_sync(lanes, vote) != 0;
}
ACCRUE_DEVICE int warp_sum(int value, unsigned lanes = kAllLanes) {
  return __reduce_add_sync(lanes, value);
}
ACCRUE_DEVICE int warp_min(int value, unsigned lanes = kAllLanes) {
  return __reduce_min_sync(lanes, value);
}
ACCRUE_DEVICE int warp_max(int value, unsigned lanes = kAllLanes) {
  return __reduce_max_sync(lanes, value);
}

ACCRUE_DEVICE bool is_aligned4(const float* p) {
  return reinterpret_cast<std::uintptr_t>(p) % 16 == 0;
}
ACCRUE_DEVICE Float4 load4(const float* p) {
  const float4 value = *reinterpret_cast<const float4*>(p);
  return {{value.x, value.y, value.z, value.w}};
}
ACCRUE_DEVICE void store4(float* p, Float4 value) {
  *reinterpret_cast<float4*>(p) = {value.v[0], value.v[1], value.v[2], value.v[3]};
}
ACCRUE_DEVICE void stream4(float* p, Float4 value) {
  __stcs(reinterpret_cast<float4*>(p), make_float4(value.v[0], value.v[1], value.v[2], value.v[3]));
}

ACCRUE_DEVICE int atomic_add(int* p, int value) { return atomicAdd(p, value); }
ACCRUE_DEVICE int atomic_max(int* p, int value) { return atomicMax(p, value); }
void atomic_add(float*, float) = delete;
void atomic_add(double*, double) = delete;
void atomic_max(float*, float) = delete;
void atomic_max(double*, double) = delete;

/// Shared memory that a block may have on the current device.
///
/// Errors:  DeviceError.
inline std::size_t max_shared_bytes() {
  int device = 0, bytes = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "cudaDeviceGetAttribute");
  return static_cast<std::size_t>(bytes);
}

/// Lets a kernel have all that a block may have, not what one launch needs: another thread may
/// launch it with more at the same time.
///
/// Errors:  DeviceError, which names the kernel.
inline void allow_shared_memory(const char* name, const void* kernel) {
  cudaFuncAttributes its{};
  check(cudaFuncGetAttributes(&its, kernel), name);
  check(cudaFuncSetAttribute(kernel,
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(max_shared_bytes() - its.sharedSizeBytes)),
        name);
}

/// Queues kernel(args...) on the stream.
///
/// Errors:  DeviceError, which names the kernel.
template <class... Parameters, class... Args>
void launch(const Launch& how, void (*kernel)(Parameters...), const Args&... args) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "kernels take plain values");
  static_assert((sizeof(Parameters) + ... + 0) <= 4096, "CUDA passes at most 4 KB to a kernel");
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(how.grid_x), static_cast<unsigned>(how.grid_y));
  config.blockDim = dim3(static_cast<unsigned>(how.threads));
  config.dynamicSmemBytes = how.dynamic_shared;
  config.stream = static_cast<cudaStream_t>(how.stream.handle);
  constexpr std::size_t kUnasked = 47 * 1024;  // with the kernel's own arrays 48 KB
  if (how.dynamic_shared > kUnasked)
    allow_shared_memory(how.name, reinterpret_cast<const void*>(kernel));
  check(cudaLaunchKernelEx(&config, kernel, args...), how.name);
}

}  // namespace accrue::kernels::cuda
