// Products by cuBLAS: every layout that it takes, in each speed mode.
#include "accrue/kernels/cuda/blas.h"

#include "accrue/core/error.h"
#include "accrue/kernels/cuda/allocator.h"
#include "accrue/kernels/cuda/current_stream.h"
#include "accrue/kernels/simt/streams.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>
#include <random>
#include <vector>

using namespace accrue::kernels;
namespace simt = accrue::simt;
using accrue::MatmulPrecision;
using cuda::Blas;

namespace {

struct Numbers {
  std::vector<float> values;
  Matrix<const float> view;

  /// A [rows, cols] view: dense, with a gap after each row, or the transpose of such.
  Numbers(std::int64_t rows, std::int64_t cols, std::int64_t gap, bool is_transposed, int seed) {
    const std::int64_t inner = is_transposed ? rows : cols, outer = is_transposed ? cols : rows;
    values.resize(static_cast<std::size_t>(outer * (inner + gap)));
    std::mt19937 engine(static_cast<unsigned>(seed));
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (float& value : values) value = uniform(engine);
    view = {values.data(), outer, inner, inner + gap, 1};
    if (is_transposed) view = view.transposed();
  }
};

/// The largest error against the product in double.
double error_of(
    MatmulPrecision precision, const Numbers& a, const Numbers& b, std::int64_t c_gap, bool adds) {
  const std::int64_t m = a.view.rows, n = b.view.cols, k = a.view.cols;
  std::vector<float> out(static_cast<std::size_t>(m * (n + c_gap)), 0.5f);
  Matrix<float> c{out.data(), m, n, n + c_gap, 1};
  Blas blas;
  REQUIRE(blas.multiply(precision, {a.view, b.view, c, adds}, {}));
  double most = 0;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = adds ? 0.5 : 0;
      for (std::int64_t l = 0; l < k; ++l) sum += double{a.view(i, l)} * b.view(l, j);
      most = std::max(most, std::abs(sum - c(i, j)));
    }
    for (std::int64_t j = n; j < n + c_gap; ++j) CHECK(c(i, j) == 0.5f);
  }
  return most;
}

}  // namespace

TEST_CASE("cuda.blas: products of all layouts lie within the error of their precision") {
  int num_products = 0;
  double worst_tf32 = 0, worst_bf16 = 0;
  for (const std::int64_t k : {1, 7, 64}) {
    for (int layouts = 0; layouts < 32; ++layouts) {
      const Numbers a(5, k, layouts & 1 ? 3 : 0, layouts & 2, layouts);
      const Numbers b(k, 9, layouts & 4 ? 2 : 0, layouts & 8, layouts + 100);
      for (const bool adds : {false, true}) {
        const std::int64_t gap = layouts & 16 ? 4 : 0;
        const double tf32 = error_of(MatmulPrecision::tf32, a, b, gap, adds);
        const double bf16 = error_of(MatmulPrecision::bf16, a, b, gap, adds);
        CHECK(tf32 <= static_cast<double>(k) * 0x1p-10);
        CHECK(bf16 <= static_cast<double>(k) * 0x1p-7);
        worst_tf32 = std::max(worst_tf32, tf32);
        worst_bf16 = std::max(worst_bf16, bf16);
        num_products += 2;
      }
    }
  }
  CHECK(worst_bf16 > 4 * worst_tf32);
  MESSAGE(num_products, " products, errors ", worst_tf32, " in tf32, ", worst_bf16, " in bf16");
}

TEST_CASE("cuda.blas: layouts without dense rows or columns are left to others") {
  const std::vector<float> values(64, 1.0f);
  const Matrix<const float> sparse{values.data(), 3, 3, 12, 2}, dense{values.data(), 3, 3, 3, 1};
  const Matrix<const float> repeated{values.data(), 3, 3, 0, 1};
  std::vector<float> out(9, 7.0f);
  const Matrix<float> c = row_major(out.data(), 3, 3);
  Blas blas;
  CHECK_FALSE(blas.multiply(MatmulPrecision::tf32, {sparse, dense, c}, {}));
  CHECK_FALSE(blas.multiply(MatmulPrecision::tf32, {dense, sparse, c}, {}));
  CHECK_FALSE(blas.multiply(MatmulPrecision::tf32, {repeated, dense, c}, {}));
  CHECK_FALSE(blas.multiply(MatmulPrecision::tf32, {dense, dense, c.transposed()}, {}));
  CHECK(out == std::vector<float>(9, 7.0f));
  CHECK(blas.multiply(MatmulPrecision::tf32, {dense, dense, c}, {}));
  CHECK(out == std::vector<float>(9, 3.0f));
}

TEST_CASE("cuda.blas: products without summands are zero, those without outputs nothing") {
  float x = 1, y = 5;
  Blas blas;
  const auto none = row_major<const float>(&x, 1, 0);
  CHECK(blas.multiply(MatmulPrecision::bf16, {none, none.transposed(), row_major(&y, 1, 1)}, {}));
  CHECK(y == 0);
  CHECK(blas.multiply(MatmulPrecision::bf16, {none.transposed(), none, row_major(&y, 0, 0)}, {}));
}

TEST_CASE("cuda.blas: a handle gets memory that lies in the cache, and is refused without any") {
  const cuda::Stream stream = cuda::current_stream(0);
  cuda::free(cuda::allocate(4096, 0, stream), stream);
  simt::set_device_size(simt::device_memory_in_use());
  { const Blas blas; }
  simt::set_device_size(simt::device_memory_in_use());
  CHECK_THROWS_WITH_AS(
      Blas(), doctest::Contains("[cublasCreate] CUBLAS_STATUS_ALLOC_FAILED"), accrue::DeviceError);
  simt::set_device_size(std::size_t{1} << 40);
}
