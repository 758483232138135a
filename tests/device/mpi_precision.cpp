// Mixed precision between processes that have a GPU each: mpirun -n 2 mpi_precision.
#include "accrue/dist/world.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/train/precision_runs.h"

using namespace accrue;
using namespace accrue::tests;
using train::MixedPrecision;

namespace {

dist::ProcessGroup& group() {
  static const std::shared_ptr<dist::ProcessGroup> ranks = dist::init({.timeout = 60});
  return *ranks;
}

/// Of one rank, on the CPU.
Report wanted(MixedPrecision precision, std::int64_t bad_sample = -1) {
  return on_ranks(1, [&](dist::ProcessGroup& alone) {
    return train_net({.process_group = &alone, .mixed_precision = precision}, kWindow, bad_sample);
  })[0];
}

Report on_devices(MixedPrecision precision, std::int64_t batch_size, std::int64_t bad_sample = -1) {
  return train_net(
      {.device = Device::cuda(0), .process_group = &group(), .mixed_precision = precision},
      batch_size,
      bad_sample);
}

}  // namespace

TEST_CASE("device.mpi_precision: processes have the bits of one rank on the CPU") {
  REQUIRE(group().size() == 2);
  for (const auto precision : {MixedPrecision::bf16, MixedPrecision::fp16}) {
    const Report expected = wanted(precision);
    for (const std::int64_t batch_size : {1, 4}) {
      CAPTURE(batch_size);
      CHECK(on_devices(precision, batch_size) == expected);
    }
  }
}

TEST_CASE("device.mpi_precision: an overflow in one process skips the step of both") {
  const Report expected = wanted(MixedPrecision::fp16, 9);  // in the second window
  CHECK(expected.skipped[1]);
  CHECK(on_devices(MixedPrecision::fp16, 2, 9) == expected);
}
