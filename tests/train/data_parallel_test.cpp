// DistributedDataParallel on ranks that are threads.
#include "accrue/dist/dist.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/train/data_parallel_checks.h"

using namespace accrue;

namespace {

void on_ranks(void (*check)(dist::ProcessGroup&)) {
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    CAPTURE(size);
    dist::run_ranks(size, [&](dist::ProcessGroup& group) { check(group); }, {.timeout = 60});
  }
}

}  // namespace

TEST_CASE("train.data_parallel: gradients are the mean over ranks in the order of the tree") {
  on_ranks(test::check_averages);
}

TEST_CASE("train.data_parallel: passes under no_sync stay local, wherever their forward ran") {
  on_ranks(test::check_no_sync);
}

TEST_CASE("train.data_parallel: buffers are rank 0's after the pass and are left alone before") {
  on_ranks(test::check_buffers);
}

TEST_CASE("train.data_parallel: a rank that cannot go backward is named, and all go on") {
  on_ranks(test::check_failures);
}
