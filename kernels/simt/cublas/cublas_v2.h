// The part of cuBLAS that this project uses, with cuBLAS's names, as the simulator offers it.
//
// Operands are rounded to the type that tensor cores take and summed in float32, four partial sums
// to an element: near the true product, as cuBLAS is, and no more.
#pragma once

#include <cstddef>

using cublasHandle_t = struct cublasContext*;
using cudaStream_t = struct CUstream_st*;

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cudaDataType_t { CUDA_R_32F = 0 };
enum cublasComputeType_t {
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
};
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 };

/// Takes a workspace of the device, which may be full.
cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
const char* cublasGetStatusName(cublasStatus_t status);
const char* cublasGetStatusString(cublasStatus_t status);

/// Matrices are column-major: c = alpha op(a) op(b) + beta c.
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle,
                                          cublasOperation_t transa,
                                          cublasOperation_t transb,
                                          int m,
                                          int n,
                                          int k,
                                          const void* alpha,
                                          const void* a,
                                          cudaDataType_t a_type,
                                          int lda,
                                          long long stride_a,
                                          const void* b,
                                          cudaDataType_t b_type,
                                          int ldb,
                                          long long stride_b,
                                          const void* beta,
                                          void* c,
                                          cudaDataType_t c_type,
                                          int ldc,
                                          long long stride_c,
                                          int batch_count,
                                          cublasComputeType_t compute,
                                          cublasGemmAlgo_t algorithm);
