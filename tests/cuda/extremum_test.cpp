// Maxima and minima on CUDA against the CPU's, under every schedule.
#include "accrue/core/config.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/support/device_tensor.h"
#include "accrue/tests/support/doctest.h"

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

/// Many equal values, zeros of both signs; with `nans` one in 16 is NaN.
template <class T>
Tensor few_values(const Shape& shape, bool nans) {
  std::mt19937_64 random(1);
  Tensor x = Tensor::empty(shape, dtype_of<T>);
  T* const out = x.mutable_data<T>();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    out[i] = static_cast<T>(random() % 5) - T(2);
    if (random() % 8 == 0) out[i] = T(-0.0);
    if (nans && random() % 16 == 0) out[i] = T(NAN);
  }
  return x;
}

template <class T>
void check(const Tensor& values, int dim, Layout layout, bool largest) {
  Shape kept = values.shape();
  if (kept.rank() > 0) kept.erase(dim);
  DeviceTensor x(values, layout);
  auto best = DeviceTensor::unwritten(kept, dtype_of<T>);
  auto places = DeviceTensor::unwritten(kept, DType::int64);
  launch_cpu(Extremum{"max", largest, x.twin, dim, best.twin, places.twin});
  CAPTURE(values.shape().str());
  CAPTURE(dim);
  CAPTURE(largest);
  CHECK(examine({best.output("values"), places.output("indices")}, [&] {
          launch_cuda(Extremum{"max", largest, x.tensor, dim, best.tensor, places.tensor}, {});
        }) == "");
}

std::vector<Shape> shapes() {
  std::vector<Shape> out = {{}, {1}, {7}, {33, 5}, {2, 3, 4}, {0, 3}};
  if (!kAddressSanitizer && !kThreadSanitizer) {
    for (const Shape& more :
         {Shape{2, 1024}, Shape{2, 1025}, Shape{1100, 3}, Shape{2, 3, 2, 2, 2, 2}})
      out.push_back(more);
  }
  return out;
}

}  // namespace

TEST_CASE("cuda.extremum: values and first places are the CPU's along any dimension") {
  int count = 0;
  const bool is_slow = kAddressSanitizer || kThreadSanitizer;
  for (const Shape& shape : shapes()) {
    for (int dim = 0; dim < std::max(shape.rank(), 1); ++dim) {
      if (shape.rank() > 0 && shape[dim] == 0) continue;
      for (const bool largest : {true, false}) {
        for (const bool nans : {false, true}) {
          check<float>(few_values<float>(shape, nans), dim, kLayouts[count % 4], largest);
          if (!is_slow || nans)
            check<double>(few_values<double>(shape, nans), dim, Layout::contiguous, largest);
          ++count;
        }
      }
    }
  }
  MESSAGE(count, " searches, two types under ", all_schedules().size(), " schedules");
}

TEST_CASE("cuda.extremum: of infinities and of NaNs alone the first is found") {
  for (const float value : {HUGE_VALF, -HUGE_VALF, NAN}) {
    for (const bool largest : {true, false}) {
      check<float>(Tensor::full({40}, value), 0, Layout::contiguous, largest);
    }
  }
}

TEST_CASE("cuda.extremum: rows behind the first 2^31 elements are searched") {
  constexpr std::int64_t kRows = (std::int64_t{1} << 29) + 40, kBytes = kRows * 16;
  const simt::GuardedMemory memory(kBytes, 0, simt::GuardedMemory::kWideFence);
  const simt::GuardedMemory values(kRows * 4, 0, simt::GuardedMemory::kWideFence);
  const simt::GuardedMemory indices(kRows * 8, 0, simt::GuardedMemory::kWideFence);
  reinterpret_cast<float*>(memory.data())[kRows * 4 - 2] = 3.0f;
  const auto over = [](const simt::GuardedMemory& bytes, const Shape& shape, DType dtype) {
    const auto size = static_cast<std::int64_t>(bytes.size());
    return Tensor::over(Storage::adopt(bytes.data(), size, Device::cuda(0)), shape, dtype);
  };
  Tensor best = over(values, {kRows}, DType::float32),
         places = over(indices, {kRows}, DType::int64);
  simt::run_options() = {.block_begin = (kRows - 1) / 8};
  launch_cuda(Extremum{"max", true, over(memory, {kRows, 4}, DType::float32), 1, best, places}, {});
  simt::run_options() = {};
  CHECK(best.data<float>()[kRows - 1] == 3.0f);
  CHECK(places.data<std::int64_t>()[kRows - 1] == 2);
}

TEST_CASE("cuda.extremum: wrong operands are refused as on the CPU") {
  DeviceTensor x(Tensor::zeros({2, 0})), y(Tensor::zeros({2})), wide(Tensor::zeros({3, 2}));
  auto places = DeviceTensor::unwritten({2}, DType::int64);
  const auto search = [&](const Tensor& from, int dim, Tensor& values, Tensor& indices) {
    launch_cuda(Extremum{"max", true, from, dim, values, indices}, {});
  };
  CHECK_THROWS_AS(search(x.tensor, 1, y.tensor, places.tensor), IndexError);
  CHECK_THROWS_AS(search(wide.tensor, 1, y.tensor, places.tensor), ShapeError);
  CHECK_THROWS_AS(search(wide.tensor, 0, y.tensor, y.tensor), DTypeError);
}
