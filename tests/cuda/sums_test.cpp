// Sums on CUDA against the CPU's, in every bit, under every schedule.
#include "accrue/core/config.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/support/device_tensor.h"
#include "accrue/tests/support/doctest.h"

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

template <class T>
Tensor numbers(const Shape& shape, unsigned seed) {
  std::mt19937_64 random(seed);
  return random_tensor<T>(shape, random);
}

/// Around the borders of warps, blocks of the sum and groups of 32 blocks.
std::vector<Shape> matrices() {
  std::vector<Shape> out = {{3, 0}, {0, 3}, {9, 3}, {17, 33}, {2, 1025}};
  if (!kAddressSanitizer && !kThreadSanitizer) {
    for (const Shape& more : {Shape{1, 1},
                              Shape{8, 32},
                              Shape{3, 1024},
                              Shape{33, 2100},
                              Shape{1, 32 * 1024},
                              Shape{2, 33 * 1024 + 5}}) {
      out.push_back(more);
    }
  }
  return out;
}

Shape kept_shape(const Shape& shape, std::uint32_t dims) {
  Shape kept;
  for (int d = 0; d < shape.rank(); ++d) {
    if ((dims >> d & 1) == 0) kept.push_back(shape[d]);
  }
  return kept;
}

template <class T>
void check_dims(const Shape& shape, std::uint32_t dims, Layout in, Layout out, bool squares) {
  DeviceTensor x(numbers<T>(shape, dims), in);
  auto y = DeviceTensor::unwritten(kept_shape(shape, dims), dtype_of<T>, out);
  launch_cpu(SumDims{x.twin, dims, y.twin, squares});
  CAPTURE(shape.str());
  CAPTURE(dims);
  CAPTURE(static_cast<int>(in));
  CHECK(examine({y.output("y")}, [&] {
          launch_cuda(SumDims{x.tensor, dims, y.tensor, squares}, {});
        }) == "");
}

template <class T>
void check_square_sum(const Shape& shape, Layout layout) {
  DeviceTensor x(numbers<T>(shape, 5), layout);
  const double expected = launch_cpu(SquareSum{{&x.twin, 1}});
  CAPTURE(shape.str());
  CHECK(examine({}, [&] {
          CHECK(bits_of(launch_cuda(SquareSum{{&x.tensor, 1}}, {})) == bits_of(expected));
        }) == "");
}

}  // namespace

TEST_CASE("cuda.sums: sums over any dimensions have the CPU's bits in any layout") {
  int count = 0;
  std::vector<Shape> shapes = matrices();
  for (const Shape& more :
       {Shape{}, Shape{7}, Shape{2, 3, 4}, Shape{5, 1, 3, 2}, Shape{2, 3, 2, 2, 2, 2}}) {
    shapes.push_back(more);
  }
  for (const Shape& shape : shapes) {
    const bool is_large = product(shape, 0, shape.rank()) > 4096;
    const std::uint32_t step = shape.rank() > 4 ? 5 : 1;
    for (std::uint32_t dims = is_large ? 2 : 0; dims < 1U << shape.rank(); dims += step) {
      const Layout in = kLayouts[count % 4], out = kWritableLayouts[count / 4 % 3];
      check_dims<float>(shape, dims, in, out, count % 2 == 0);
      check_dims<double>(shape, dims, Layout::contiguous, out, count % 2 == 1);
      ++count;
    }
  }
  MESSAGE(count, " reductions, two types under ", all_schedules().size(), " schedules");
}

TEST_CASE("cuda.sums: columns beside each other are added in the order of rows") {
  for (const Shape& shape : matrices()) {
    for (const bool squares : {false, true}) {
      if (shape[1] < 5000) {
        check_dims<float>(shape, 1, Layout::contiguous, Layout::contiguous, squares);
      }
      check_dims<float>(shape, 2, Layout::transposed, Layout::contiguous, squares);
    }
  }
}

TEST_CASE("cuda.sums: sums of squares have the CPU's bits and are the host's when they return") {
  for (const Shape& shape : matrices()) {
    check_square_sum<float>(shape, Layout::contiguous);
    check_square_sum<float>(shape, Layout::transposed);
    check_square_sum<double>(shape, Layout::interleaved);
  }
  check_square_sum<float>({}, Layout::contiguous);
  check_square_sum<float>({0}, Layout::contiguous);
}

TEST_CASE("cuda.sums: elements behind the first 2^31 are added, along rows and columns") {
  constexpr std::int64_t kLong = (std::int64_t{1} << 29) + 40, kBytes = kLong * 16;
  const simt::GuardedMemory memory(kBytes, 0, simt::GuardedMemory::kWideFence);
  const simt::GuardedMemory sums(kLong * 4, 0, simt::GuardedMemory::kWideFence);
  float* const values = reinterpret_cast<float*>(memory.data());
  for (std::int64_t i = 1; i <= 4; ++i) values[kLong * 4 - i] = static_cast<float>(i);
  const Device device = Device::cuda(0);
  const Tensor x = Tensor::over(Storage::adopt(memory.data(), kBytes, device), {kLong, 4});
  Tensor y = Tensor::over(Storage::adopt(sums.data(), kLong * 4, device), {kLong});
  simt::run_options() = {.block_begin = (kLong - 1) / 8};
  launch_cuda(SumDims{x, 2, y}, {});
  CHECK(y.data<float>()[kLong - 1] == 10.0f);
  simt::run_options() = {.block_begin = (kLong - 1) / 32};
  launch_cuda(SumDims{x.view({4, kLong}), 1, y}, {});
  CHECK(y.data<float>()[kLong - 1] == 1.0f);
  simt::run_options() = {};
}

TEST_CASE("cuda.sums: row sums have the CPU's bits for any stride") {
  for (const Shape& shape : matrices()) {
    const std::int64_t rows = shape[0], cols = shape[1];
    const auto values = numbers<float>({rows * cols * 2}, 6).to_vector<float>();
    DeviceFloats x(values), sum(DeviceFloats::unwritten(static_cast<std::size_t>(rows)));
    for (const bool squares : {false, true}) {
      for (const std::int64_t stride : {1, 2, 0}) {
        const auto strided = [&](const float* data) {
          return Matrix<const float>{data, rows, cols, 2 * cols, stride};
        };
        std::vector<float> expected(static_cast<std::size_t>(rows));
        launch_cpu(RowSum<float>{strided(values.data()), expected.data(), squares});
        CAPTURE(shape.str());
        CHECK(examine({{"sum", &sum, expected}}, [&] {
                launch_cuda(RowSum<float>{strided(x.data()), sum.data(), squares}, {});
              }) == "");
      }
    }
  }
}

TEST_CASE("cuda.sums: row sums of float64 have the CPU's bits") {
  const auto drawn = numbers<double>({2, 1500}, 7).to_vector<double>();
  const DeviceVector<double> values(drawn.begin(), drawn.end());
  const Matrix<const double> x = row_major(values.data(), 2, 1500);
  DeviceVector<double> expected(2), sum(2);
  launch_cpu(RowSum<double>{x, expected.data()});
  launch_cuda(RowSum<double>{x, sum.data()}, {});
  CHECK(sum == expected);
}

TEST_CASE("cuda.sums: sums of nothing are +0") {
  DeviceFloats sum(DeviceFloats::unwritten(3));
  CHECK(examine({{"sum", &sum, {0, 0, 0}}}, [&] {
          launch_cuda(RowSum<float>{{nullptr, 3, 0, 0, 1}, sum.data()}, {});
          launch_cuda(RowSum<float>{{nullptr, 0, 5, 5, 1}, nullptr}, {});
        }) == "");
  CHECK(hex8(sum.values()[2]) == "00000000");
}

TEST_CASE("cuda.sums: wrong results are refused as on the CPU") {
  DeviceTensor x(Tensor::zeros({2, 3})), y(Tensor::zeros({3})), integers(Tensor::arange(3));
  CHECK_THROWS_AS(launch_cuda(SumDims{x.tensor, 2, y.tensor}, {}), ShapeError);
  CHECK_THROWS_AS(launch_cuda(SumDims{x.tensor, 1, integers.tensor}, {}), DTypeError);
  CHECK_THROWS_AS(launch_cuda(SquareSum{{&integers.tensor, 1}}, {}), DTypeError);
}
