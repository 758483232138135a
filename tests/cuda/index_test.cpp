// Picking by index on CUDA against the CPU's, in every bit, under every schedule.
#include "accrue/kernels/index.h"

#include "accrue/core/error.h"
#include "accrue/kernels/cuda/fault.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/kernels/lane_reference.h"
#include "accrue/tests/support/device_tensor.h"
#include "accrue/tests/support/doctest.h"

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

struct Case {
  Shape x, index;
  int dim;
};

const Case kCases[] = {{{}, {}, 0},
                       {{5}, {9}, 0},
                       {{5}, {0}, 0},
                       {{4, 6}, {4, 3}, 1},
                       {{4, 6}, {2, 9}, 1},
                       {{4, 6}, {11, 6}, 0},
                       {{30, 70}, {40, 70}, 0},
                       {{3, 4, 5}, {3, 7, 5}, 1},
                       {{2, 3, 4, 5}, {2, 1, 9, 5}, 2},
                       {{2, 3, 2, 2, 2, 3}, {2, 3, 2, 2, 5, 3}, 4},
                       {{3, 1200}, {3, 1100}, 1}};

Tensor numbers(const Shape& shape, DType dtype, Dice& dice) {
  Tensor values = Tensor::empty(shape);
  float* const out = values.mutable_data<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i) out[i] = dice.value();
  return values.to(dtype);
}

Tensor indices(const Case& it, Dice& dice) {
  Tensor values = Tensor::empty(it.index, DType::int64);
  std::int64_t* const out = values.mutable_data<std::int64_t>();
  const std::int64_t limit = it.x.rank() == 0 ? 1 : it.x[it.dim];
  for (std::int64_t i = 0; i < values.numel(); ++i) out[i] = dice.below(limit);
  return values;
}

}  // namespace

TEST_CASE("cuda.index: picked elements have the CPU's bits, of any layout and size") {
  Dice dice{std::mt19937(1)};
  int num_cases = 0;
  for (const Case& it : kCases) {
    for (const Layout layout : kLayouts) {
      for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::uint8}) {
        const Layout of_x = num_cases % 3 == 0 ? Layout::contiguous : layout;
        const bool is_number = dtype == DType::uint8;  // to() refuses what does not fit
        const DeviceTensor x(is_number ? Tensor::ones(it.x, dtype) : numbers(it.x, dtype, dice),
                             of_x);
        const DeviceTensor index(indices(it, dice), layout);
        DeviceTensor y = DeviceTensor::unwritten(
            it.index, dtype, layout == Layout::expanded ? Layout::contiguous : layout);
        launch_cpu(Gather{"gather", x.twin, it.dim, index.twin, y.twin});
        CAPTURE(it.x.str());
        CAPTURE(it.dim);
        CHECK(examine({y.output("y")}, [&] {
                launch_cuda(Gather{"gather", x.tensor, it.dim, index.tensor, y.tensor}, {});
              }) == "");
        ++num_cases;
      }
    }
  }
  MESSAGE(num_cases, " cases under ", all_schedules().size(), " schedules");
}

TEST_CASE("cuda.index: gradients are added in the CPU's order") {
  Dice dice{std::mt19937(2)};
  for (const Case& it : kCases) {
    for (const Layout layout : kLayouts) {
      for (const DType dtype : {DType::float32, DType::float64}) {
        const DeviceTensor dy(numbers(it.index, dtype, dice), layout);
        const DeviceTensor index(indices(it, dice), layout);
        DeviceTensor dx(numbers(it.x, dtype, dice),
                        layout == Layout::expanded ? Layout::contiguous : layout);
        launch_cpu(ScatterAdd{"scatter_add", dy.twin, it.dim, index.twin, dx.twin});
        CAPTURE(it.x.str());
        CAPTURE(it.dim);
        CHECK(examine({dx.output("dx")}, [&] {
                launch_cuda(ScatterAdd{"scatter_add", dy.tensor, it.dim, index.tensor, dx.tensor},
                            {});
              }) == "");
      }
    }
  }
}

TEST_CASE("cuda.index: an index outside the dimension is noted and touches nothing") {
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{3}, INT64_MAX, INT64_MIN}) {
    const DeviceTensor x(Tensor::of<float>({1, 2, 3})), dy(Tensor::of<float>({4, 5, 6}));
    const DeviceTensor index(Tensor::of<std::int64_t>({2, bad, 1}));
    DeviceTensor y = DeviceTensor::unwritten({3}), dx(Tensor::zeros({3}));
    DeviceVector<int> fault(1);
    const cuda::Stream stream{nullptr, fault.data()};
    launch_cuda(Gather{"gather", x.tensor, 0, index.tensor, y.tensor}, stream);
    CHECK_THROWS_AS(cuda::throw_fault(fault[0]), IndexError);
    CHECK(y.tensor.data<float>()[0] == 3);
    CHECK(y.tensor.data<float>()[1] == 0);
    fault[0] = 0;
    launch_cuda(ScatterAdd{"scatter_add", dy.tensor, 0, index.tensor, dx.tensor}, stream);
    CHECK_THROWS_AS(cuda::throw_fault(fault[0]), IndexError);
    CHECK(dx.tensor.data<float>()[0] == 0);
    CHECK(dx.tensor.data<float>()[2] == 4);
  }
}

TEST_CASE("cuda.index: elements behind the first 2^31 are picked") {
  constexpr std::int64_t kSize = (std::int64_t{1} << 31) + 5;
  const simt::GuardedMemory memory(kSize * 4, 0, simt::GuardedMemory::kWideFence);
  reinterpret_cast<float*>(memory.data())[kSize - 1] = 7;
  Tensor x = Tensor::over(Storage::adopt(memory.data(), kSize * 4, Device::cuda()), {kSize});
  const DeviceTensor index(Tensor::of<std::int64_t>({kSize - 1, 0})), dy(Tensor::of<float>({1, 2}));
  DeviceTensor y = DeviceTensor::unwritten({2});
  launch_cuda(Gather{"gather", x, 0, index.tensor, y.tensor}, {});
  CHECK(y.tensor.data<float>()[0] == 7);
  launch_cuda(ScatterAdd{"scatter_add", dy.tensor, 0, index.tensor, x}, {});
  CHECK(x.data<float>()[kSize - 1] == 8);
  CHECK(x.data<float>()[0] == 2);
}
