// Sums and buckets of gradients that lie on devices: the CPU's bits, by NCCL or by way of the host.
#include "accrue/dist/ring.h"
#include "accrue/dist/threads.h"
#include "accrue/kernels/simt/streams.h"
#include "accrue/tests/dist/bucketer_checks.h"
#include "accrue/tests/dist/messages.h"
#include "accrue/tests/dist/sum_checks.h"
#include "accrue/tests/support/doctest.h"

#include <atomic>
#include <bit>
#include <cstdlib>

using namespace accrue;
using namespace accrue::dist;

namespace {

/// Calls body(group, device) on thread ranks, which have a GPU each, or one together.
template <class Body>
void on_devices(const Body& body) {
  const bool is_quick = std::getenv("ACCRUE_QUICK") != nullptr;  // under sanitizers
  for (const bool share : {false, true}) {
    for (int size = is_quick ? 2 : 1; size <= (is_quick ? 2 : 4); ++size) {
      run_ranks(size, [&](ProcessGroup& group) {
        const Device device = Device::cuda(share ? 0 : group.rank());
        CHECK((group.link(device) == nullptr) == (share || size == 1));
        body(group, device);
      });
    }
  }
}

}  // namespace

TEST_CASE("cuda.device_sums: ordered sums have the bits of a literal tree, whoever holds what") {
  std::atomic<int> sums = 0;
  on_devices([&](ProcessGroup& group, Device device) {
    sums += test::check_sum_nodes(group, device);
    sums += test::check_many_tensors(group, device);
    if (std::has_single_bit(static_cast<unsigned>(group.size()))) {
      sums += test::check_one_node_each(group, device);
    }
  });
  MESSAGE(sums.load(), " sums");
}

TEST_CASE("cuda.device_sums: buckets have the bits of plain loops, with overlap and without") {
  std::atomic<int> windows = 0;
  for (const auto order : {simt::StreamOrder::lazy, simt::StreamOrder::random}) {
    simt::set_stream_options({.order = order});
    on_devices([&](ProcessGroup& group, Device device) {
      windows += test::check_bucketer(group, device);
    });
  }
  MESSAGE(windows.load(), " windows");
}

TEST_CASE("cuda.device_sums: rings add all ranks and end in one result") {
  on_devices([&](ProcessGroup& group, Device device) {
    Tensor tensor = Tensor::full({1000}, 1 + group.rank()).to(device);
    ring_all_reduce(group, tensor);
    const int size = group.size();
    CHECK(equal_bits(tensor.to(Device::cpu()), Tensor::full({1000}, size * (size + 1) / 2)));
  });
}

TEST_CASE("cuda.device_sums: other collectives take tensors of devices and return such") {
  on_devices([&](ProcessGroup& group, Device device) {
    const int size = group.size();
    Tensor tensor = Tensor::full({3}, group.rank()).to(device);
    const Tensor all = group.all_gather(tensor);
    CHECK(all.device() == device);
    CHECK(all.to(Device::cpu()).select(0, size - 1).to_vector<float>()[2] ==
          static_cast<float>(size - 1));
    group.broadcast(tensor, size - 1);
    CHECK(tensor.to(Device::cpu()).to_vector<float>()[0] == static_cast<float>(size - 1));
    group.all_reduce(tensor, ReduceOp::max);
    CHECK(tensor.device() == device);
  });
}

TEST_CASE("cuda.device_sums: a second device of a rank, and ranks on other devices, are refused") {
  run_ranks(2, [](ProcessGroup& group) {
    group.link(Device::cuda(group.rank()));
    CHECK(test::message<DeviceError>([&] { group.link(Device::cuda(3)); }) ==
          text("[link] a rank of a group must keep to one device, got cuda:3 after cuda:",
               group.rank(),
               "; use one group per device"));
    Tensor sum = Tensor::zeros({3});
    CHECK_THROWS_AS(
        sum_nodes(
            group, 8, {{0, group.rank(), Tensor::ones({3}).to(Device::cuda(group.rank()))}}, sum),
        DeviceError);
  });
}
