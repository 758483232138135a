// Training between processes: mpirun -n W mpi_training. Every rank runs every test case.
#include "accrue/dist/world.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/train/data_parallel_checks.h"

using namespace accrue;

namespace {

dist::ProcessGroup& group() {
  static const std::shared_ptr<dist::ProcessGroup> ranks = dist::init({.timeout = 60});
  return *ranks;
}

}  // namespace

TEST_CASE("train.mpi_training: DistributedDataParallel is that of threads") {
  REQUIRE(group().size() > 1);
  test::check_averages(group());
  test::check_no_sync(group());
  test::check_buffers(group());
  test::check_failures(group());
}
