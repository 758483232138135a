// check(): errors of the CUDA runtime as exceptions.
#pragma once

#include "accrue/core/error.h"

#include <cuda_runtime.h>

namespace accrue::kernels::cuda {

/// Whether every later call of the process fails, too.
inline bool is_fatal(cudaError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchTimeout:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
      return true;
    default:
      return false;
  }
}

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
  if (is_fatal(status)) {
    return "; a kernel before this call failed and the device is lost to the process: start it "
           "again, under compute-sanitizer to learn which kernel it was";
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
