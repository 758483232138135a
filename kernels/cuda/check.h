// check(): errors of the CUDA runtime as exceptions.
#pragma once

#include "accrue/core/error.h"

#include <cuda_runtime.h>

namespace accrue::kernels::cuda {

/// What to do about an error.
inline const char* advice_on(cudaError_t status) {
  if (status == cudaErrorNoKernelImageForDevice) {
    return "; kernels need a GPU of compute capability 8.0 or later and a build for it, see "
           "CMAKE_CUDA_ARCHITECTURES";
  }
  if (status == cudaErrorUnsupportedPtxVersion) {
    return "; the driver is older than the compiler: update it, or build for this GPU, see "
           "CMAKE_CUDA_ARCHITECTURES";
  }
  return "; without a GPU and its driver use the CPU";
}

/// Throws a DeviceError unless a call of the CUDA runtime succeeded.
inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // it is told here: who else asks CUDA finds no old error
  fail<DeviceError>("[",
                    call,
                    "] ",
                    cudaGetErrorName(status),
                    ": ",
                    cudaGetErrorString(status),
                    advice_on(status));
}

}  // namespace accrue::kernels::cuda
