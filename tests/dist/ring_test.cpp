// The ring: the order of its sums on 1 to 8 ranks, and that this order depends on their number.
#include "accrue/dist/ring.h"

#include "accrue/dist/threads.h"
#include "accrue/tests/dist/sum_checks.h"
#include "accrue/tests/support/doctest.h"

#include <atomic>

using namespace accrue;
using namespace accrue::dist;

TEST_CASE("dist.ring: each slice is added rank by rank, around the ring") {
  std::atomic<int> sums = 0;
  for (int size = 1; size <= 8; ++size) {
    run_ranks(size, [&](ProcessGroup& group) { sums += test::check_ring(group); });
  }
  MESSAGE(sums.load(), " sums");
}

TEST_CASE("dist.ring: bits depend on the place of an element") {
  run_ranks(3, [](ProcessGroup& group) {
    constexpr float kValues[] = {1e8f, 1.0f, -1e8f};
    Tensor tensor = Tensor::full({3}, kValues[group.rank()]);
    ring_all_reduce(group, tensor);
    CHECK(equal_bits(tensor, Tensor::of<float>({0, 1, 0})));
  });
}

TEST_CASE("dist.ring: integers are summed, views are written, half types are refused") {
  run_ranks(2, [](ProcessGroup& group) {
    Tensor base = Tensor::zeros({4, 2}, DType::int64);
    Tensor column = base.select(1, 1);
    column.fill(group.rank() + 1);
    ring_all_reduce(group, column);
    CHECK(equal_bits(column, Tensor::full({4}, 3, DType::int64)));
    CHECK(equal_bits(base.select(1, 0), Tensor::zeros({4}, DType::int64)));
    Tensor half = Tensor::zeros({2}, DType::bfloat16);
    CHECK_THROWS_WITH_AS(
        ring_all_reduce(group, half),
        "[ring_all_reduce] cannot reduce bfloat16, which is for storage; convert with to()",
        DTypeError);
  });
}
