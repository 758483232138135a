// Sums and buckets of gradients that lie on devices: the CPU's bits, by NCCL or by way of the host.
#include "accrue/core/device_backend.h"
#include "accrue/dist/ring.h"
#include "accrue/dist/threads.h"
#include "accrue/kernels/cuda/current_stream.h"
#include "accrue/kernels/simt/streams.h"
#include "accrue/tests/dist/bucketer_checks.h"
#include "accrue/tests/dist/messages.h"
#include "accrue/tests/dist/sum_checks.h"
#include "accrue/tests/support/doctest.h"

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdlib>

using namespace accrue;
using namespace accrue::dist;

namespace {

const bool is_quick = std::getenv("ACCRUE_QUICK") != nullptr;  // under sanitizers

/// Calls body(group, device) on thread ranks, which have a GPU each, or one together.
template <class Body>
void on_devices(const Body& body) {
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

/// What this thread queues on the device later begins after so many seconds.
void hold_up(Device device, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  const auto stream = kernels::cuda::current_stream(device.index);
  simt::enqueue_steps(static_cast<simt::Stream*>(stream.handle), [=] {
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
    return waited.count() > seconds;
  });
}

std::vector<BucketParameter> one_parameter(Device device) {
  return {{"weight", {100}, DType::float32, device}};
}

/// A copy of the gradient of a window, which is 1 on 2 ranks, as an optimizer would read it.
Tensor reduce_window(Bucketer& bucketer, const ProcessGroup& group, Device device) {
  bucketer.begin(0, "1");
  bucketer.ready(0, {{{0, group.rank() * 4, Tensor::ones({100}).to(device)}}});
  bucketer.finish();
  return bucketer.gradient(0).clone();
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
    if (is_quick && order == simt::StreamOrder::lazy) continue;
    simt::set_stream_options({.order = order});
    on_devices([&](ProcessGroup& group, Device device) {
      windows += test::check_bucketer(group, device);
    });
  }
  MESSAGE(windows.load(), " windows");
}

TEST_CASE(
    "cuda.device_sums: a bucketer that ends in peace waits for sums, however long they take") {
  run_ranks(2, [](ProcessGroup& group) {
    const Device device = Device::cuda(group.rank());
    Tensor gradient;
    {
      Bucketer bucketer(group, one_parameter(device), &test::sum_of_weights);
      hold_up(device, 1.5);
      gradient = reduce_window(bucketer, group, device);
    }
    CHECK(equal_bits(gradient.to(Device::cpu()), Tensor::ones({100})));
  });
}

TEST_CASE("cuda.device_sums: who reads sums that were given up after the window is told") {
  run_ranks(2, [](ProcessGroup& group) {
    const Device device = Device::cuda(group.rank());
    Bucketer bucketer(group, one_parameter(device), &test::sum_of_weights);
    group.set_timeout(2);
    hold_up(device, 3);
    const Tensor gradient = reduce_window(bucketer, group, device);
    CHECK_THROWS_AS(gradient.to(Device::cpu()), TimeoutError);
    CHECK_NOTHROW(gradient.to(Device::cpu()));  // once
    CHECK_THROWS_AS(bucketer.begin(1, "1"), TimeoutError);
  });
}

TEST_CASE("cuda.device_sums: a rank that throws ends the sums that wait for it within seconds") {
  const auto start = std::chrono::steady_clock::now();
  CHECK_THROWS_WITH_AS(run_ranks(2,
                                 [](ProcessGroup& group) {
                                   const Device device = Device::cuda(group.rank());
                                   Bucketer bucketer(
                                       group, one_parameter(device), &test::sum_of_weights);
                                   if (group.rank() == 1) hold_up(device, 2);
                                   reduce_window(bucketer, group, device);
                                   if (group.rank() == 1) throw ValueError("bad data");
                                 }),
                       "bad data",
                       ValueError);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
  for (const int index : {0, 1}) {
    CHECK_THROWS_AS(synchronize(Device::cuda(index)), DistributedError);
  }
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
