// Gradients of broadcast parameters, and merges, on CUDA against the CPU's, in every bit, under
// every schedule.
#include "accrue/core/config.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/kernels/lane_reference.h"
#include "accrue/tests/support/device_tensor.h"
#include "accrue/tests/support/doctest.h"

#include <memory>

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

/// A gradient of shape `full`; the parameter was expanded to it.
struct Case {
  Shape full, parameter;
  int row_dims;
};

const Case kCases[] = {
    {{}, {}, 0},
    {{9}, {}, 1},
    {{9}, {1}, 0},
    {{9}, {9}, 1},
    {{12, 5}, {5}, 1},
    {{12, 5}, {}, 1},
    {{12, 5}, {12, 1}, 1},
    {{12, 5}, {12, 5}, 2},
    {{40, 70}, {1, 70}, 1},
    {{6, 4, 3}, {4, 3}, 2},
    {{6, 4, 3}, {3}, 2},
    {{6, 4, 3}, {4, 1}, 1},
    {{6, 4, 3}, {6, 1, 3}, 2},
    {{2, 3, 4, 5}, {3, 1, 5}, 3},
    {{2, 3, 2, 2, 2, 2}, {3, 1, 2, 1, 2}, 5},
    {{2, 3, 2, 2, 2, 2}, {3, 1, 2, 1, 2}, 1},
    {{0, 3}, {3}, 1},
    {{4, 0}, {4, 1}, 1},
    {{4, 3, 0}, {0}, 1},
};

/// Buffers of a program on both devices.
template <class T>
class Buffers {
 public:
  Buffers(const Program& program, std::int64_t count, Dice& dice) {
    for (const bool is_loaded : program.loaded) {
      Tensor values = Tensor::empty({count}, dtype_of<T>);
      T* const out = values.mutable_data<T>();
      for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(dice.value());
      arrays_.push_back(is_loaded ? std::make_unique<DeviceTensor>(values) : nullptr);
      if (!is_loaded) {
        arrays_.back().reset(new DeviceTensor(DeviceTensor::unwritten({count}, dtype_of<T>)));
      }
      host.push_back(arrays_.back()->twin.template mutable_data<T>());
      device.push_back(arrays_.back()->tensor.template mutable_data<T>());
    }
  }
  std::vector<Output> outputs() {
    std::vector<Output> all;
    for (auto& array : arrays_) all.push_back(array->output("buffer"));
    return all;
  }

  std::vector<T*> host, device;

 private:
  std::vector<std::unique_ptr<DeviceTensor>> arrays_;
};

/// Every third row is all zero; where a row lives, one factor may be infinite.
template <class T>
Tensor gradient(const Case& shapes, std::mt19937_64& random) {
  Tensor a = random_tensor<T>(shapes.full, random);
  const auto row_size = product(shapes.full, shapes.row_dims, shapes.full.rank());
  T* const values = a.mutable_data<T>();
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    if (i / row_size % 3 == 1) values[i] = i % 2 ? T(0) : T(-0.0);
  }
  return a;
}

template <class T>
void check_case(const Case& shapes, Layout layout, bool has_factor, Dice& dice) {
  std::mt19937_64 random(dice.engine());
  const std::int64_t rows = product(shapes.full, 0, shapes.row_dims);
  const Program program = dice.once_in(2) ? random_program(rows, dice)
                                          : lane_tree({rows / 5, rows / 2, rows}, dice.once_in(2));
  DeviceTensor a(gradient<T>(shapes, random), layout);
  DeviceTensor b(random_tensor<T>(shapes.full, random, true));
  const Tensor none;
  Buffers<T> buffers(program, product(shapes.parameter, 0, shapes.parameter.rank()), dice);
  launch_cpu(BroadcastGrad<T>{a.twin,
                              has_factor ? b.twin : none,
                              shapes.row_dims,
                              shapes.parameter,
                              program.view(),
                              buffers.host});
  CAPTURE(shapes.full.str());
  CAPTURE(shapes.parameter.str());
  CAPTURE(shapes.row_dims);
  CHECK(examine(buffers.outputs(), [&] {
          launch_cuda(BroadcastGrad<T>{a.tensor,
                                       has_factor ? b.tensor : none,
                                       shapes.row_dims,
                                       shapes.parameter,
                                       program.view(),
                                       buffers.device},
                      {});
        }) == "");
}

template <class T>
void check_merges(std::int64_t count, Dice& dice) {
  const Program program = random_program(0, dice);
  Buffers<T> buffers(program, count, dice);
  launch_cpu(LaneMerges<T>{program.view(), buffers.host, count});
  CAPTURE(count);
  CHECK(examine(buffers.outputs(), [&] {
          launch_cuda(LaneMerges<T>{program.view(), buffers.device, count}, {});
        }) == "");
}

}  // namespace

TEST_CASE("cuda.broadcast_grad: lane programs have the CPU's bits over shapes and layouts") {
  Dice dice{std::mt19937(4)};
  const int rounds = kAddressSanitizer || kThreadSanitizer ? 1 : 4;
  int count = 0;
  for (int round = 0; round < rounds; ++round) {
    for (const Case& shapes : kCases) {
      for (const Layout layout : kLayouts) {
        if (rounds == 1 && layout == Layout::interleaved) continue;
        check_case<float>(shapes, layout, count % 2 == 0, dice);
        if (layout == Layout::contiguous) check_case<double>(shapes, layout, true, dice);
        ++count;
      }
    }
  }
  MESSAGE(count, " programs under ", all_schedules().size(), " schedules");
}

TEST_CASE("cuda.broadcast_grad: merges of buffers have the CPU's bits") {
  Dice dice{std::mt19937(5)};
  const int rounds = kAddressSanitizer || kThreadSanitizer ? 1 : 30;
  for (int round = 0; round < rounds; ++round) {
    for (const std::int64_t count : {0, 1, 63, 65, 300}) {
      check_merges<float>(count, dice);
      check_merges<double>(count, dice);
    }
  }
}

TEST_CASE("cuda.broadcast_grad: elements behind the first 2^31 take part") {
  constexpr std::int64_t kCols = (std::int64_t{1} << 30) + 40, kBytes = kCols * 12;
  const simt::GuardedMemory memory(kBytes, 0, simt::GuardedMemory::kWideFence);
  const simt::GuardedMemory sums(kCols * 4, 0, simt::GuardedMemory::kWideFence);
  reinterpret_cast<float*>(memory.data())[kCols * 3 - 1] = 2.0f;
  const Tensor a = Tensor::over(Storage::adopt(memory.data(), kBytes, Device::cuda(0)), {3, kCols});
  float* const buffer = reinterpret_cast<float*>(sums.data());
  const Program program = lane_tree({3}, false);
  // Only the last block of elements runs, and no search for live rows, which reads everything.
  simt::run_options() = {.block_begin = (kCols - 1) / 64};
  launch_cuda(BroadcastGrad<float>{a, Tensor(), 1, {kCols}, program.view(), {&buffer, 1}}, {});
  simt::run_options() = {};
  CHECK(buffer[kCols - 1] == 2.0f);  // rows count as live: that memory starts as ones
}

TEST_CASE("cuda.broadcast_grad: wrong operands are refused as on the CPU") {
  DeviceTensor a(Tensor::zeros({4, 3})), doubles(Tensor::zeros({4, 3}, DType::float64));
  float* const buffer = nullptr;
  const Program program = lane_tree({4}, false), longer = lane_tree({5}, false);
  const auto run = [&](const Tensor& from, const Shape& parameter, const Program& it) {
    launch_cuda(BroadcastGrad<float>{from, Tensor(), 1, parameter, it.view(), {&buffer, 1}}, {});
  };
  CHECK_THROWS_AS(run(doubles.tensor, {3}, program), DTypeError);
  CHECK_THROWS_AS(run(a.tensor, {4}, program), ShapeError);
  CHECK_THROWS_AS(run(a.tensor, {3}, longer), IndexError);
}
