// cuBLAS in the simulator: products by plain loops over rounded operands.
#include "accrue/core/error.h"
#include "accrue/kernels/simt/cublas/calls.h"
#include "accrue/kernels/simt/cublas/cublas_v2.h"
#include "accrue/kernels/simt/streams.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

struct cublasContext {
  accrue::simt::Stream* stream = nullptr;
  void* workspace = nullptr;
};

namespace {

std::atomic<std::int64_t> num_calls = 0;

/// Rounds to nearest even at so many bits of the fraction.
float round_to(float x, int fraction_bits) {
  if (x != x || fraction_bits == 23) return x;
  const int dropped = 23 - fraction_bits;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t half = (1U << (dropped - 1)) - 1 + (bits >> dropped & 1U);
  return std::bit_cast<float>((bits + half) >> dropped << dropped);
}

/// op(matrix), column-major.
struct Operand {
  const float* data;
  std::int64_t row_stride, col_stride;
  int fraction_bits;

  Operand(const void* elements, cublasOperation_t operation, int leading, int bits)
      : data(static_cast<const float*>(elements)),
        row_stride(operation == CUBLAS_OP_N ? 1 : leading),
        col_stride(operation == CUBLAS_OP_N ? leading : 1),
        fraction_bits(bits) {}
  float operator()(std::int64_t i, std::int64_t j) const {
    return round_to(data[i * row_stride + j * col_stride], fraction_bits);
  }
};

struct Product {
  Operand left, right;
  float* c;
  std::int64_t m, n, k, ldc;
  float scale, keep;

  void run() const {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < m; ++i) {
        float sums[4] = {};
        for (std::int64_t l = 0; l < k; ++l) sums[l % 4] += left(i, l) * right(l, j);
        float& out = c[i + j * ldc];
        const float product = scale * ((sums[0] + sums[1]) + (sums[2] + sums[3]));
        out = keep == 0 ? product : product + keep * out;  // beta 0 does not read c
      }
    }
  }
};

}  // namespace

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  constexpr std::size_t kWorkspaceBytes = 1024;
  void* workspace = nullptr;
  try {
    workspace = accrue::simt::allocate_device(kWorkspaceBytes);
  } catch (const accrue::OutOfMemoryError&) {
    return CUBLAS_STATUS_ALLOC_FAILED;
  }
  *handle = new cublasContext{nullptr, workspace};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  accrue::simt::free_device(handle->workspace);
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->stream = reinterpret_cast<accrue::simt::Stream*>(stream);
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusName(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_ALLOC_FAILED) return "CUBLAS_STATUS_ALLOC_FAILED";
  return status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                               : "CUBLAS_STATUS_NOT_INITIALIZED";
}

const char* cublasGetStatusString(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_ALLOC_FAILED) return "the resource allocation failed";
  return status == CUBLAS_STATUS_INVALID_VALUE ? "an unsupported value or parameter"
                                               : "the library was not initialized";
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle,
                                          cublasOperation_t transa,
                                          cublasOperation_t transb,
                                          int m,
                                          int n,
                                          int k,
                                          const void* alpha,
                                          const void* a,
                                          cudaDataType_t,
                                          int lda,
                                          long long stride_a,
                                          const void* b,
                                          cudaDataType_t,
                                          int ldb,
                                          long long stride_b,
                                          const void* beta,
                                          void* c,
                                          cudaDataType_t,
                                          int ldc,
                                          long long stride_c,
                                          int batch_count,
                                          cublasComputeType_t compute,
                                          cublasGemmAlgo_t) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const bool is_right = m >= 0 && n >= 0 && k >= 0 && batch_count >= 0 && ldc >= std::max(1, m) &&
                        lda >= std::max(1, transa == CUBLAS_OP_N ? m : k) &&
                        ldb >= std::max(1, transb == CUBLAS_OP_N ? k : n);
  if (!is_right) return CUBLAS_STATUS_INVALID_VALUE;
  ++num_calls;
  const int bits = compute == CUBLAS_COMPUTE_32F             ? 23
                   : compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? 10
                                                             : 7;
  const Product first{Operand(a, transa, lda, bits),
                      Operand(b, transb, ldb, bits),
                      static_cast<float*>(c),
                      m,
                      n,
                      k,
                      ldc,
                      *static_cast<const float*>(alpha),
                      *static_cast<const float*>(beta)};
  accrue::simt::enqueue(handle->stream, [=] {
    Product product = first;
    for (int i = 0; i < batch_count; ++i) {
      product.run();
      product.left.data += stride_a;
      product.right.data += stride_b;
      product.c += stride_c;
    }
  });
  return CUBLAS_STATUS_SUCCESS;
}

std::int64_t accrue::simt::num_cublas_calls() { return num_calls; }
