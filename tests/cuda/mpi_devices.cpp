// Sums between processes that have a GPU each: mpirun -n W mpi_devices.
#include "accrue/core/device_backend.h"
#include "accrue/dist/device_link.h"
#include "accrue/dist/world.h"
#include "accrue/kernels/simt/devices.h"
#include "accrue/kernels/simt/nccl/communicator.h"
#include "accrue/tests/dist/bucketer_checks.h"
#include "accrue/tests/dist/messages.h"
#include "accrue/tests/dist/sum_checks.h"
#include "accrue/tests/support/doctest.h"

#include <unistd.h>

#include <thread>

using namespace accrue;
using namespace accrue::dist;

namespace {

/// Made before links are, so destroyed after what the CUDA runtime and NCCL destroy at the end.
struct AtExit {
  ~AtExit() {
    if (ncclComm::num_alive() > 0) _exit(1);
  }
};

/// Made once, since its connection to other GPUs is.
ProcessGroup& group() {
  static const std::shared_ptr<ProcessGroup> ranks = init({.timeout = 60});
  static const AtExit at_exit;
  return *ranks;
}

}  // namespace

TEST_CASE("cuda.mpi_devices: processes that share a GPU are refused with one text") {
  const auto twin = group().duplicate();
  const std::string said = test::message<DeviceError>([&] { twin->link(Device::cuda(0)); });
  CHECK(
      said.starts_with("[connect_devices] each rank must have a GPU of its own, got ranks 0 and 1 "
                       "both on "));
  for (const std::string& other : group().all_gather_bytes(said)) CHECK(other == said);
}

TEST_CASE("cuda.mpi_devices: ordered sums and buckets have the bits of plain loops") {
  const Device device = Device::cuda(group().local_rank());
  REQUIRE(group().link(device) != nullptr);
  CHECK(test::check_sum_nodes(group(), device) > 0);
  CHECK(test::check_many_tensors(group(), device) > 0);
  CHECK(test::check_bucketer(group(), device) > 0);
}

TEST_CASE("cuda.mpi_devices: a rank that never comes on the device is given up at the deadline") {
  const auto twin = group().duplicate();
  twin->set_timeout(3);
  const Device device = Device::cuda(group().local_rank());
  DeviceLink* const link = twin->link(device);
  group().barrier();
  if (group().rank() > 0) {
    Tensor tensor = Tensor::ones({10}).to(device);
    CHECK_THROWS_AS(
        [&] {
          link->all_reduce(tensor.mutable_data<float>(), 10, DType::float32);
          synchronize(device);
          link->check();
        }(),
        DistributedError);
  }
  group().barrier();
}

TEST_CASE("cuda.mpi_devices: the process of a rank uses its own GPU alone") {
  const auto twin = group().duplicate();
  REQUIRE(twin->link(Device::cuda(group().local_rank())) != nullptr);
  std::thread([&] { twin->leave("all is done", true); }).join();  // a thread that used no device
  for (int device = 0; device < simt::kNumDevices; ++device) {
    CHECK(simt::has_context(device) == (device == group().local_rank()));
  }
}
