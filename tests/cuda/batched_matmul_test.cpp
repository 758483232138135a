// Products over leading dimensions on CUDA against the CPU's, in every bit, under every schedule.
#include "accrue/core/config.h"
#include "accrue/core/error.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/kernels/lane_reference.h"
#include "accrue/tests/support/device_tensor.h"
#include "accrue/tests/support/doctest.h"

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

Tensor numbers(const Shape& shape, Dice& dice) {
  Tensor values = Tensor::empty(shape);
  float* const out = values.mutable_data<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i) out[i] = dice.value();
  return values;
}

}  // namespace

TEST_CASE("cuda.batched_matmul: products have the CPU's bits for any leading dimensions") {
  Dice dice{std::mt19937(1)};
  const std::vector<Shape> leads = {{}, {1}, {3}, {2, 3}, {2, 1, 2}};
  const std::int64_t sizes[][3] = {{1, 1, 1}, {3, 5, 2}, {64, 16, 64}, {65, 33, 70}, {2, 0, 3}};
  int num_products = 0;
  for (const Shape& lead : leads) {
    for (const auto& [m, k, n] : sizes) {
      if ((kAddressSanitizer || kThreadSanitizer) && m > 3 && lead.rank() > 1) continue;
      for (const Layout layout : {Layout::contiguous, Layout::transposed, Layout::interleaved}) {
        Shape a_shape = lead, b_shape = lead, c_shape = lead;
        for (const std::int64_t size : {m, k}) a_shape.push_back(size);
        for (const std::int64_t size : {k, n}) b_shape.push_back(size);
        for (const std::int64_t size : {m, n}) c_shape.push_back(size);
        const DeviceTensor a(numbers(a_shape, dice), layout);
        const DeviceTensor b(numbers(b_shape, dice), num_products % 2 ? layout : Layout::expanded);
        DeviceTensor c = DeviceTensor::unwritten(c_shape);
        launch_cpu(BatchedMatmul{a.twin, b.twin, c.twin});
        CAPTURE(a_shape.str());
        CAPTURE(n);
        CHECK(examine({c.output("c")}, [&] {
                launch_cuda(BatchedMatmul{a.tensor, b.tensor, c.tensor}, {});
              }) == "");
        ++num_products;
      }
    }
  }
  MESSAGE(num_products, " products under ", all_schedules().size(), " schedules");
}

TEST_CASE("cuda.batched_matmul: shapes that do not fit and other dtypes are refused") {
  const Tensor a = Tensor::zeros({2, 3, 4}), b = Tensor::zeros({2, 5, 3});
  CHECK_THROWS_AS(launch_cuda(BatchedMatmul{a, b, Tensor::zeros({2, 3, 3})}, {}), ShapeError);
  const Tensor doubles = Tensor::zeros({2, 4, 3}, DType::float64);
  CHECK_THROWS_AS(launch_cuda(BatchedMatmul{a, doubles, Tensor::zeros({2, 3, 3})}, {}), DTypeError);
}
