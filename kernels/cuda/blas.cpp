#include "accrue/kernels/cuda/blas.h"

#include "accrue/core/error.h"
#include "accrue/kernels/cuda/allocator.h"
#include "accrue/kernels/cuda/runtime.h"

#include <cublas_v2.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <optional>

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

struct Layouts {
  Layout a, b, c;
};

bool find_layouts(const BlasProduct& product, Layouts& layouts) {
  return product.batch <= std::numeric_limits<int>::max() && find_layout(product.a, layouts.a) &&
         find_layout(product.b, layouts.b) && find_layout(product.c, layouts.c) &&
         layouts.c.operation == CUBLAS_OP_N;
}

// Row-major c = a b is column-major c^T = b^T a^T.

cublasStatus_t gemm(cublasHandle_t handle,
                    cublasComputeType_t compute,
                    const BlasProduct& product,
                    const Layouts& layouts) {
  const float one = 1, keep = product.adds ? 1 : 0;
  return cublasGemmStridedBatchedEx(handle,
                                    layouts.b.operation,
                                    layouts.a.operation,
                                    static_cast<int>(product.c.cols),
                                    static_cast<int>(product.c.rows),
                                    static_cast<int>(product.a.cols),
                                    &one,
                                    product.b.data,
                                    CUDA_R_32F,
                                    static_cast<int>(layouts.b.leading),
                                    product.b_step,
                                    product.a.data,
                                    CUDA_R_32F,
                                    static_cast<int>(layouts.a.leading),
                                    product.a_step,
                                    &keep,
                                    product.c.data,
                                    CUDA_R_32F,
                                    static_cast<int>(layouts.c.leading),
                                    product.c_step,
                                    static_cast<int>(product.batch),
                                    compute,
                                    CUBLAS_GEMM_DEFAULT);
}

}  // namespace

Blas::Blas() {
  cublasHandle_t handle = nullptr;
  cublasStatus_t status = cublasCreate(&handle);
  if (status != CUBLAS_STATUS_SUCCESS && num_devices() > 0) {  // its memory may lie in our cache
    empty_cache(current_device());
    status = cublasCreate(&handle);
  }
  check(status, "cublasCreate");
  handle_ = handle;
}

Blas::~Blas() { cublasDestroy(static_cast<cublasHandle_t>(handle_)); }

bool Blas::takes(const BlasProduct& product) {
  Layouts layouts;
  return find_layouts(product, layouts);
}

bool Blas::multiply(MatmulPrecision precision, const BlasProduct& product, Stream stream) {
  Layouts layouts;
  if (!find_layouts(product, layouts)) return false;
  if (product.c.rows == 0 || product.c.cols == 0 || product.batch == 0) return true;
  const auto handle = static_cast<cublasHandle_t>(handle_);
  check(cublasSetStream(handle, static_cast<cudaStream_t>(stream.handle)), "cublasSetStream");
  check(gemm(handle, compute_type(precision), product, layouts), "cublasGemmStridedBatchedEx");
  return true;
}

namespace {

/// The handle of a device. Making it may wait for that device's streams, which may wait for other
/// devices: each has its own lock.
struct OfDevice {
  std::mutex mutex;
  std::optional<Blas> blas;
};

OfDevice& of_device(int device) {
  static std::mutex mutex;
  static auto* const all = new std::map<int, OfDevice>;  // outlives the driver's last calls
  const std::scoped_lock lock(mutex);
  return (*all)[device];
}

}  // namespace

bool multiply_by_blas(MatmulPrecision precision, const BlasProduct& product, Stream stream) {
  if (precision == MatmulPrecision::ieee || !Blas::takes(product)) return false;
  OfDevice& place = of_device(current_device());
  const std::scoped_lock lock(place.mutex);
  if (!place.blas) place.blas.emplace();
  return place.blas->multiply(precision, product, stream);
}

}  // namespace accrue::kernels::cuda
