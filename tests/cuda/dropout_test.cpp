// Dropout masks on CUDA against the CPU's, in every bit, under every schedule.
#include "accrue/kernels/dropout.h"

#include "accrue/core/counter_generator.h"
#include "accrue/core/error.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/simt_check.h"

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

Tensor over(std::byte* data, const Shape& shape, DType dtype = DType::float32) {
  const std::int64_t bytes = checked_numel(shape, "over") * size_of(dtype);
  return Tensor::over(Storage::adopt(data, bytes, Device::cuda()), shape, dtype);
}

struct Case {
  Shape shape;
  std::int64_t rows;
};

}  // namespace

TEST_CASE("cuda.dropout: masks have the CPU's bits for every shape and probability") {
  const Case cases[] = {{{1}, 1},
                        {{7}, 1},
                        {{12}, 4},
                        {{10}, 5},
                        {{5, 1}, 1},
                        {{6, 33}, 3},
                        {{3, 4, 8}, 1},
                        {{4, 3, 130}, 2},
                        {{2, 1027}, 1},
                        {{2, 2, 2, 2, 3}, 2},
                        {{0, 4}, 1},
                        {{1, 5000}, 1}};
  int num_masks = 0;
  for (const Case& it : cases) {
    for (const double p : {0.0, 1e-9, 0.1, 0.5, 0.9999999, 1.0}) {
      DropoutMask args;
      args.p = p;
      args.seed = 0x123456789abcdefU;
      args.window = 3;
      args.first_position = 1ULL << 40;
      args.stream = 0xfedcba9876543210U;
      args.rows = it.rows;
      args.mask = Tensor::empty(it.shape);
      launch_cpu(args);
      const std::vector<float> expected = args.mask.to_vector<float>();
      DeviceFloats mask(DeviceFloats::unwritten(expected.size()), 4 * (num_masks % 4));
      CAPTURE(it.shape.str());
      CAPTURE(p);
      CHECK(examine({{"mask", &mask, expected}}, [&] {
              args.mask = over(reinterpret_cast<std::byte*>(mask.data()), it.shape);
              launch_cuda(args, {});
            }) == "");
      ++num_masks;
    }
  }
  MESSAGE(num_masks, " masks under ", all_schedules().size(), " schedules");
}

TEST_CASE("cuda.dropout: elements behind the first 2^31 are drawn at their own coordinates") {
  constexpr std::int64_t kRows = (std::int64_t{1} << 21) + 8, kWidth = 1024;
  const simt::GuardedMemory memory(kRows * kWidth * 4, 0, simt::GuardedMemory::kWideFence);
  DropoutMask args;
  args.p = 0.5;
  args.seed = 5;
  args.window = 1;
  args.rows = kRows;
  args.mask = over(memory.data(), {kRows, kWidth});
  simt::run_options() = {.block_begin = kRows / 8 - 1};
  launch_cuda(args, {});
  simt::run_options() = {};
  const float* const last = reinterpret_cast<const float*>(memory.data()) + (kRows - 1) * kWidth;
  const CounterGenerator generator = CounterGenerator(5, 1, 0, 0).at(kRows - 1);
  for (std::int64_t j = 0; j < kWidth; ++j) {
    const bool is_kept = generator.uniform(static_cast<std::uint64_t>(j)) < 0.5f;
    CHECK(last[j] == (is_kept ? 2.0f : 0.0f));
  }
}

TEST_CASE("cuda.dropout: masks of another dtype are refused") {
  std::byte bytes[32];
  DropoutMask args;
  args.mask = over(bytes, {4}, DType::float64);
  CHECK_THROWS_AS(launch_cuda(args, {}), DeviceError);
}
