// check(): errors of the CUDA runtime as exceptions.
#pragma once

#include "accrue/core/error.h"

#include <cuda_runtime.h>

namespace accrue::kernels::cuda {

/// Throws a DeviceError unless a call of the CUDA runtime succeeded.
inline void check(cudaError_t status, const char* call) {
  ACCRUE_CHECK(status == cudaSuccess,
               DeviceError,
               call,
               cudaGetErrorName(status),
               ": ",
               cudaGetErrorString(status),
               "; without a GPU and its driver use the CPU");
}

}  // namespace accrue::kernels::cuda
