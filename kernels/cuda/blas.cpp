#include "accrue/kernels/cuda/blas.h"

#include "accrue/core/error.h"

#include <cublas_v2.h>

#include <algorithm>
#include <limits>

namespace accrue::kernels::cuda {
namespace {

void check(cublasStatus_t status, const char* call) {
  ACCRUE_CHECK(status == CUBLAS_STATUS_SUCCESS,
               DeviceError,
               call,
               cublasGetStatusName(status),
               ": ",
               cublasGetStatusString(status),
               "; speed modes need an NVIDIA GPU and its driver, else use MatmulPrecision::ieee");
}

cublasComputeType_t compute_type(MatmulPrecision precision) {
  if (precision == MatmulPrecision::tf32) return CUBLAS_COMPUTE_32F_FAST_TF32;
  if (precision == MatmulPrecision::bf16) return CUBLAS_COMPUTE_32F_FAST_16BF;
  return CUBLAS_COMPUTE_32F;
}

/// A row-major matrix as cuBLAS sees it: its transpose, column-major.
struct Layout {
  cublasOperation_t operation = CUBLAS_OP_N;
  std::int64_t leading = 1;
};

/// Whether cuBLAS takes the matrix as it is.
bool find_layout(const Matrix<const float>& m, Layout& layout) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  const bool has_rows = m.col_stride == 1 || m.cols <= 1;
  const bool has_cols = m.row_stride == 1 || m.rows <= 1;
  const std::int64_t row_stride = m.rows > 1 ? m.row_stride : m.cols;
  const std::int64_t col_stride = m.cols > 1 ? m.col_stride : m.rows;
  if (has_rows && row_stride >= m.cols) {
    layout = {CUBLAS_OP_N, std::max<std::int64_t>(row_stride, 1)};
  } else if (has_cols && col_stride >= m.rows) {
    layout = {CUBLAS_OP_T, std::max<std::int64_t>(col_stride, 1)};
  } else {
    return false;
  }
  return layout.leading <= kMost && m.rows <= kMost && m.cols <= kMost;
}

}  // namespace

Blas::Blas() {
  cublasHandle_t handle = nullptr;
  check(cublasCreate(&handle), "cublasCreate");
  handle_ = handle;
}

Blas::~Blas() { cublasDestroy(static_cast<cublasHandle_t>(handle_)); }

bool Blas::multiply(MatmulPrecision precision,
                    Matrix<const float> a,
                    Matrix<const float> b,
                    Matrix<float> c,
                    bool adds,
                    Stream stream) {
  Layout left, right, out;
  if (!find_layout(a, left) || !find_layout(b, right) || !find_layout(c, out)) return false;
  if (out.operation != CUBLAS_OP_N) return false;
  if (c.rows == 0 || c.cols == 0) return true;
  const auto handle = static_cast<cublasHandle_t>(handle_);
  const float one = 1, keep = adds ? 1 : 0;
  check(cublasSetStream(handle, static_cast<cudaStream_t>(stream.handle)), "cublasSetStream");
  // Row-major c = a b is column-major c^T = b^T a^T.
  check(cublasGemmEx(handle,
                     right.operation,
                     left.operation,
                     static_cast<int>(c.cols),
                     static_cast<int>(c.rows),
                     static_cast<int>(a.cols),
                     &one,
                     b.data,
                     CUDA_R_32F,
                     static_cast<int>(right.leading),
                     a.data,
                     CUDA_R_32F,
                     static_cast<int>(left.leading),
                     &keep,
                     c.data,
                     CUDA_R_32F,
                     static_cast<int>(out.leading),
                     compute_type(precision),
                     CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
  return true;
}

}  // namespace accrue::kernels::cuda
