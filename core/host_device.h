// ACCRUE_HD marks functions that compile for the host and for CUDA devices.
#pragma once

#ifdef __CUDACC__
#define ACCRUE_HD __host__ __device__ __forceinline__
#else
#define ACCRUE_HD inline __attribute__((always_inline))
#endif
