// Comparisons and choices on CUDA against the CPU's, under every schedule.
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/support/device_tensor.h"
#include "accrue/tests/support/doctest.h"

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

constexpr CompareOp kOps[] = {
    CompareOp::eq, CompareOp::ne, CompareOp::lt, CompareOp::le, CompareOp::gt, CompareOp::ge};
constexpr DType kCompared[] = {
    DType::float32, DType::float64, DType::int64, DType::int32, DType::uint8, DType::boolean};

/// Few values, so that many are equal; floats also have NaNs.
Tensor few_values(const Shape& shape, DType dtype, unsigned seed) {
  std::mt19937_64 random(seed);
  Tensor x = Tensor::empty(shape, DType::float64);
  double* const out = x.mutable_data<double>();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    out[i] = static_cast<double>(random() % 4);
    if (is_floating(dtype) && random() % 4 == 0) out[i] = random() % 2 == 0 ? -0.0 : NAN;
  }
  return x.to(dtype);
}

}  // namespace

TEST_CASE("cuda.compare: every comparison of every type has the CPU's results") {
  int count = 0;
  for (const DType dtype : kCompared) {
    for (const CompareOp op : kOps) {
      for (const Shape& shape :
           {Shape{}, Shape{0}, Shape{1}, Shape{9, 7}, Shape{2, 3, 2, 2, 2, 2}}) {
        const Layout in = kLayouts[count % 4], out = kWritableLayouts[count % 3];
        DeviceTensor a(few_values(shape, dtype, 1), in), b(few_values(shape, dtype, 2));
        auto y = DeviceTensor::unwritten(shape, DType::boolean, out);
        launch_cpu(Compare{op, a.twin, b.twin, y.twin});
        CAPTURE(name_of(dtype));
        CAPTURE(name_of(op));
        CAPTURE(shape.str());
        CHECK(examine({y.output("y")}, [&] {
                launch_cuda(Compare{op, a.tensor, b.tensor, y.tensor}, {});
              }) == "");
        ++count;
      }
    }
  }
  MESSAGE(count, " comparisons under ", all_schedules().size(), " schedules");
}

TEST_CASE("cuda.compare: a condition chooses elements of any size, bits unchanged") {
  int count = 0;
  for (const DType dtype : {DType::float32, DType::int64, DType::float16, DType::uint8}) {
    for (const Shape& shape : {Shape{}, Shape{1100}, Shape{9, 7}, Shape{2, 3, 2, 2, 2, 2}}) {
      const Layout in = kLayouts[count % 4], out = kWritableLayouts[count % 3];
      DeviceTensor condition(few_values(shape, DType::boolean, 3), in);
      DeviceTensor a(few_values(shape, dtype, 4)), b(few_values(shape, dtype, 5), in);
      auto y = DeviceTensor::unwritten(shape, dtype, out);
      launch_cpu(Where{condition.twin, a.twin, b.twin, y.twin});
      CAPTURE(name_of(dtype));
      CAPTURE(shape.str());
      CHECK(examine({y.output("y")}, [&] {
              launch_cuda(Where{condition.tensor, a.tensor, b.tensor, y.tensor}, {});
            }) == "");
      ++count;
    }
  }
}

TEST_CASE("cuda.compare: wrong operands are refused as on the CPU") {
  DeviceTensor x(Tensor::zeros({3})), halves(Tensor::zeros({3}, DType::float16));
  auto y = DeviceTensor::unwritten({3}, DType::boolean);
  auto wide = DeviceTensor::unwritten({4}, DType::boolean);
  const auto compare = [&](const Tensor& a, const Tensor& b, Tensor& result) {
    launch_cuda(Compare{CompareOp::lt, a, b, result}, {});
  };
  CHECK_THROWS_AS(compare(halves.tensor, halves.tensor, y.tensor), DTypeError);
  CHECK_THROWS_AS(compare(x.tensor, y.tensor, y.tensor), DTypeError);
  CHECK_THROWS_AS(compare(x.tensor, x.tensor, wide.tensor), ShapeError);
  CHECK_THROWS_AS(launch_cuda(Where{x.tensor, x.tensor, x.tensor, x.tensor}, {}), DTypeError);
}
