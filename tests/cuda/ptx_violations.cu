// Kernels that break a rule of ptx.py each, and one that breaks none.
#include <cuda_runtime.h>

#define ACCRUE_VIOLATION(rule) extern "C" __global__ void violates_##rule

ACCRUE_VIOLATION(approximate)(float* x) { *x = expf(*x); }

ACCRUE_VIOLATION(flushes_denormals)(float* x) {
  asm volatile("add.rn.ftz.f32 %0, %0, %0;" : "+f"(*x));
}

ACCRUE_VIOLATION(inexact_division)(float* x) {
  asm volatile("div.full.f32 %0, %0, %1;" : "+f"(x[0]) : "f"(x[1]));
}

ACCRUE_VIOLATION(contractible)(float* x) {
  asm volatile("mul.f32 %0, %0, %1;" : "+f"(x[0]) : "f"(x[1]));
}

ACCRUE_VIOLATION(other_rounding)(float* x) { *x = __fmaf_rd(*x, *x, *x); }

ACCRUE_VIOLATION(float_atomic)(float* x) { atomicAdd(x, x[1]); }

ACCRUE_VIOLATION(double_precision)(double* x) { *x += 1; }

ACCRUE_VIOLATION(local_memory)(float* x, int i) {
  float values[32];
  for (int j = 0; j < 32; ++j) values[j] = x[j * i];
  *x = values[i];
}

__device__ __noinline__ float twice(float x) { return x + x; }
ACCRUE_VIOLATION(calls)(float* x) { *x = twice(*x); }

ACCRUE_VIOLATION(fences)(float* x) {
  *x = 1;
  __threadfence();
}

ACCRUE_VIOLATION(named_barrier)(float* x) {
  asm volatile("bar.sync 1, 64;");
  *x = 1;
}

extern "C" __global__ void takes_stack(float* x, int i) {
  float values[64];
  for (int j = 0; j < 64; ++j) values[j * i % 64] = x[j];
  *x = values[i];
}

/// Moves 16 bytes at once, as products do, and multiplies and adds.
extern "C" __global__ void product_kernel_wide(float4* x) {
  __shared__ float4 tile[32];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  const float4 a = tile[31 - threadIdx.x];
  float sum = a.x;
#pragma unroll
  for (int i = 0; i < 32; ++i) sum = __fmaf_rn(__fmaf_rn(sum, a.y, a.z), a.w, sum);
  x[threadIdx.x].x = sum;
}

/// The same in pieces of 4 bytes, with a sum after each product.
extern "C" __global__ void product_kernel_narrow(float* x) {
  __shared__ float tile[32];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  const float a = tile[31 - threadIdx.x];
  float sum = a;
#pragma unroll
  for (int i = 0; i < 32; ++i) sum = __fadd_rn(__fmul_rn(sum, a), a);
  x[threadIdx.x] = sum;
}

extern "C" __global__ void clean(float* x) {
  __shared__ float first;
  if (threadIdx.x == 0) first = x[0];
  __syncthreads();
  x[threadIdx.x] = __fmaf_rn(first, x[threadIdx.x], 1.0f) / x[1];
}
