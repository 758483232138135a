// Copies, conversions and fills on CUDA against core's, under every schedule.
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/support/device_tensor.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>
#include <limits>

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

constexpr DType kTypes[] = {DType::float32,
                            DType::float64,
                            DType::int64,
                            DType::int32,
                            DType::uint8,
                            DType::boolean,
                            DType::bfloat16,
                            DType::float16};

/// Around what types hold and where halves round: some fit no integer type.
Tensor edges() {
  std::vector<double> values = {0.0, -0.0, 0.4, -0.9, 1.0, 2.5, 254.9, 255.9, 256.0, -1.0};
  for (const double x : {65504.0, 65519.9, 65520.0, 1.00390625, 1.0029296875, 6e-8, 1e-40, 1e39}) {
    values.push_back(x);
    values.push_back(-x);
  }
  for (const double x : {0x1p31, 0x1p31 - 1, 0x1p53 + 2, 0x1.ffffffp62, 0x1p63, 1e300, HUGE_VAL}) {
    values.push_back(x);
    values.push_back(-x);
  }
  values.push_back(NAN);
  return Tensor::from(values, {std::ssize(values)});
}

/// Integers that a double does not hold.
Tensor wide_integers() {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kFirst = (std::int64_t{1} << 53) + 1;
  return Tensor::of<std::int64_t>({kMost, -kMost, kMost - 1, kFirst, -kFirst, kFirst << 9, 255});
}

/// The elements of `values` that to() takes.
Tensor fitting(const Tensor& values, DType dtype) {
  std::vector<Tensor> kept;
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    const Tensor element = values.narrow(0, i, 1);
    try {
      element.to(dtype);
      kept.push_back(element);
    } catch (const ValueError&) {
    }
  }
  return cat(kept);
}

bool is_refused(const Tensor& value, DType dtype) {
  DeviceTensor x(value);
  auto y = DeviceTensor::unwritten(value.shape(), dtype);
  try {
    launch_cuda(Copy{x.tensor, y.tensor}, {});
  } catch (const ValueError&) {
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("cuda.copy: every type becomes every other with the bits of to()") {
  int count = 0;
  for (const Tensor& source : {edges(), wide_integers()}) {
    for (const DType from : kTypes) {
      const Tensor values = fitting(source, from).to(from);
      for (const DType to : kTypes) {
        DeviceTensor x(fitting(values, to), kWritableLayouts[count % 3]);
        auto y = DeviceTensor::unwritten(x.twin.shape(), to, kWritableLayouts[count / 3 % 3]);
        y.twin.copy_from(x.twin.to(to));
        CAPTURE(name_of(from));
        CAPTURE(name_of(to));
        CHECK(examine({y.output("y")}, [&] { launch_cuda(Copy{x.tensor, y.tensor}, {}); }) == "");
        ++count;
      }
    }
  }
  MESSAGE(count, " pairs of types under ", all_schedules().size(), " schedules");
}

TEST_CASE("cuda.copy: a value that does not fit an integer type is refused") {
  int count = 0;
  for (const Tensor& source : {edges(), wide_integers()}) {
    for (const DType from : {DType::float32, DType::float64, DType::int64}) {
      const Tensor values = fitting(source, from).to(from);
      for (const DType to : {DType::int64, DType::int32, DType::uint8}) {
        for (std::int64_t i = 0; i < values.numel(); ++i) {
          const Tensor value = values.narrow(0, i, 1);
          bool fits = true;
          try {
            value.to(to);
          } catch (const ValueError&) {
            fits = false;
          }
          CAPTURE(value.str());
          CAPTURE(name_of(to));
          CHECK(is_refused(value, to) == !fits);
          count += !fits;
        }
      }
    }
  }
  CHECK(count > 50);
}

TEST_CASE("cuda.copy: elements of every size move between all layouts") {
  int count = 0;
  for (const DType dtype : {DType::float32, DType::int64, DType::bfloat16, DType::uint8}) {
    for (const Shape& shape :
         {Shape{}, Shape{0, 3}, Shape{1029}, Shape{9, 33}, Shape{2, 3, 2, 2, 2, 2}}) {
      for (const Layout in : kLayouts) {
        for (const Layout out : kWritableLayouts) {
          std::int64_t numel = product(shape, 0, shape.rank());
          const Tensor values = Tensor::arange(numel).view(shape);
          const Tensor bytes = dtype == DType::uint8 ? values.to(DType::boolean) : values;
          DeviceTensor x(bytes.to(dtype), in);
          auto y = DeviceTensor::unwritten(shape, dtype, out);
          y.twin.copy_from(x.twin);
          CAPTURE(shape.str());
          CHECK(examine({y.output("y")}, [&] { launch_cuda(Copy{x.tensor, y.tensor}, {}); }) == "");
          ++count;
        }
      }
    }
  }
  MESSAGE(count, " copies under ", all_schedules().size(), " schedules");
}

TEST_CASE("cuda.copy: fills write a value of any type and nothing beside it") {
  for (const DType dtype : kTypes) {
    for (const Layout out : kWritableLayouts) {
      auto y = DeviceTensor::unwritten({2, 3, 2, 2, 2, 2}, dtype, out);
      y.twin.fill(1.0);
      CAPTURE(name_of(dtype));
      CHECK(examine({y.output("y")}, [&] { launch_cuda(Fill{y.tensor, 1.0}, {}); }) == "");
    }
  }
  auto y = DeviceTensor::unwritten({3}, DType::uint8);
  CHECK_THROWS_AS(launch_cuda(Fill{y.tensor, 256}, {}), ValueError);
}

TEST_CASE("cuda.copy: elements behind the first 2^31 are converted") {
  constexpr std::int64_t kCount = (std::int64_t{1} << 31) + 1030;
  const simt::GuardedMemory from(kCount * 4, 0, simt::GuardedMemory::kWideFence);
  const simt::GuardedMemory to(kCount * 2, 0, simt::GuardedMemory::kWideFence);
  reinterpret_cast<float*>(from.data())[kCount - 1] = 2.0f;
  const Device device = Device::cuda(0);
  const Tensor x = Tensor::over(Storage::adopt(from.data(), kCount * 4, device), {kCount});
  Tensor y = Tensor::over(Storage::adopt(to.data(), kCount * 2, device), {kCount}, DType::bfloat16);
  simt::run_options() = {.block_begin = kCount / 1024 - 1};
  launch_cuda(Copy{x, y}, {});
  simt::run_options() = {};
  CHECK(static_cast<float>(y.data<BFloat16>()[kCount - 1]) == 2.0f);
}
