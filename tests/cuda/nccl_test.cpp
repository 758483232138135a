// The NCCL transport between ranks that are threads: what arrives, and what happens when ranks
// fail.
#include "accrue/core/device_backend.h"
#include "accrue/dist/device_link.h"
#include "accrue/dist/nccl/communicator.h"
#include "accrue/dist/nccl/link.h"
#include "accrue/dist/threads.h"
#include "accrue/kernels/simt/memory.h"
#include "accrue/tests/dist/messages.h"
#include "accrue/tests/support/doctest.h"

#include <atomic>
#include <chrono>
#include <thread>

using namespace accrue;
using namespace accrue::dist;
using test::message;

namespace {

using Link = std::unique_ptr<DeviceLink>;

/// Calls body(group, link) on a thread per rank, rank r on cuda:r.
template <class Body>
void with_links(int size, const Body& body, double timeout = 60) {
  run_ranks(size,
            [&](ProcessGroup& group) {
              Link link =
                  connect_devices(group, *accrue_cuda_transport(), Device::cuda(group.rank()));
              body(group, link);
            },
            {.timeout = timeout});
}

/// `count` numbers in the memory of a simulated device.
struct Numbers {
  explicit Numbers(std::size_t count) : memory(count * sizeof(float)), size(count) {}
  float* data() const { return reinterpret_cast<float*>(memory.data()); }
  std::span<std::byte> part(std::size_t begin, std::size_t count) const {
    return {memory.data() + begin * sizeof(float), count * sizeof(float)};
  }
  simt::GuardedMemory memory;
  std::size_t size;
};

/// NCCL connects ranks when they first sum; later sums are queued without waiting for others.
void meet(DeviceLink& link, int rank) {
  const Numbers number(1);
  link.all_reduce(number.data(), 1, DType::float32);
  synchronize(Device::cuda(rank));
}

void await(const std::atomic<bool>& is_over) {
  for (int i = 0; i < 1000 && !is_over; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

float value_of(int from, int to, std::size_t i) {
  return static_cast<float>(from * 100 + to * 10) + static_cast<float>(i % 7);
}

}  // namespace

TEST_CASE("cuda.nccl: pieces of any size go to their ranks") {
  for (const int size : {1, 2, 3, 4}) {
    with_links(size, [&](ProcessGroup& group, Link& link) {
      const auto ranks = static_cast<std::size_t>(size);
      const int me = group.rank();
      for (const std::size_t count : {0, 1, 1000, 50000}) {
        // Rank r sends count + d numbers to rank d.
        const Numbers out(ranks * (count + ranks)), in(ranks * (count + ranks));
        std::vector<std::span<const std::byte>> outgoing;
        std::vector<std::span<std::byte>> incoming;
        for (std::size_t r = 0; r < ranks; ++r) {
          outgoing.push_back(out.part(r * (count + ranks), count + r));
          incoming.push_back(in.part(r * (count + ranks), count + static_cast<std::size_t>(me)));
          for (std::size_t i = 0; i < count + r; ++i) {
            out.data()[r * (count + ranks) + i] = value_of(me, static_cast<int>(r), i);
          }
        }
        link->move({outgoing, incoming});
        synchronize(Device::cuda(me));
        bool is_right = true;
        for (int r = 0; r < size; ++r) {
          for (std::size_t i = 0; i < count + static_cast<std::size_t>(me); ++i) {
            const float got = in.data()[static_cast<std::size_t>(r) * (count + ranks) + i];
            is_right &= r == me || got == value_of(r, me, i);
          }
        }
        CHECK(is_right);
      }
    });
  }
}

TEST_CASE("cuda.nccl: what one rank shows arrives at all, in one array or in several") {
  with_links(3, [&](ProcessGroup& group, Link& link) {
    for (const std::size_t gap : {0, 5}) {
      const std::size_t count = 1000;
      const Numbers all(3 * (count + gap));
      std::vector<std::span<std::byte>> incoming;
      for (std::size_t r = 0; r < 3; ++r) incoming.push_back(all.part(r * (count + gap), count));
      const auto me = static_cast<std::size_t>(group.rank());
      for (std::size_t i = 0; i < count; ++i) {
        all.data()[me * (count + gap) + i] = value_of(group.rank(), 0, i);
      }
      const std::span<const std::byte> mine = incoming[me];
      link->move({{&mine, 1}, incoming});
      synchronize(Device::cuda(group.rank()));
      bool is_right = true;
      for (std::size_t r = 0; r < 3; ++r) {
        for (std::size_t i = 0; i < count; ++i) {
          is_right &= all.data()[r * (count + gap) + i] == value_of(static_cast<int>(r), 0, i);
        }
      }
      CHECK(is_right);
    }
  });
}

TEST_CASE("cuda.nccl: the fast sum adds all ranks and leaves the same bits on all") {
  with_links(4, [&](ProcessGroup& group, Link& link) {
    const Numbers numbers(1001);
    for (std::size_t i = 0; i < numbers.size; ++i) numbers.data()[i] = value_of(group.rank(), 0, i);
    link->all_reduce(numbers.data(), 1001, DType::float32);
    synchronize(Device::cuda(group.rank()));
    bool is_right = true;
    for (std::size_t i = 0; i < numbers.size; ++i) {
      is_right &= numbers.data()[i] == 600 + 4 * static_cast<float>(i % 7);
    }
    CHECK(is_right);
    CHECK_THROWS_AS(link->all_reduce(numbers.data(), 1, DType::int64), DTypeError);
  });
}

TEST_CASE("cuda.nccl: ranks on one GPU, or without one, are refused on all ranks with one text") {
  run_ranks(3, [](ProcessGroup& group) {
    const std::string said = message<DeviceError>(
        [&] { connect_devices(group, *accrue_cuda_transport(), Device::cuda(group.rank() / 2)); });
    CHECK(said ==
          "[connect_devices] each rank must have a GPU of its own, got ranks 0 and 1 both on "
          "simulated cuda:0; start at most one rank per GPU and give rank r of a host cuda:r");
  });

  struct Broken final : DeviceTransport {
    std::string identity(Device device) override {
      ACCRUE_CHECK(device.index != 1, DeviceError, "gpu", "there is no ", device.str());
      return device.str();
    }
    std::string make_id() override { return ""; }
    Link connect(const std::string&, const ProcessGroup& group, Device) override {
      ACCRUE_CHECK(group.rank() != 2, DeviceError, "nccl", "rank 2 cannot");
      return nullptr;
    }
  };
  run_ranks(3, [](ProcessGroup& group) {
    Broken broken;
    CHECK(
        message<DeviceError>([&] { connect_devices(group, broken, Device::cuda(group.rank())); }) ==
        "[connect_devices] all ranks must have a GPU, got a failure on rank 1: [gpu] there is no "
        "cuda:1");
    CHECK(
        message<DeviceError>(
            [&] { connect_devices(group, broken, Device::cuda(group.rank() + 2)); }) ==
        "[connect_devices] all ranks must connect, got a failure on rank 2: [nccl] rank 2 cannot");
  });
}

TEST_CASE("cuda.nccl: a rank that no other joins gives up at the deadline") {
  DeviceTransport& transport = *accrue_cuda_transport();
  const std::string id = transport.make_id();
  const auto body = [&](ProcessGroup& group) {
    if (group.rank() == 1) return std::this_thread::sleep_for(std::chrono::milliseconds(600));
    CHECK(message<TimeoutError>([&] { transport.connect(id, group, Device::cuda(0)); }) ==
          "[ncclCommInitRankConfig] all ranks must come within 0.2 s; see what the other ranks do, "
          "or raise the timeout");
  };
  run_ranks(2, body, {.timeout = 0.2});
}

TEST_CASE("cuda.nccl: an error of NCCL names the call and says what to do") {
  const std::string said =
      message<DeviceError>([] { nccl::check(ncclInvalidUsage, "ncclSend", nullptr); });
  CHECK(said.starts_with("[ncclSend] "));
  CHECK(said.ends_with("NCCL_DEBUG=INFO says more"));
}

TEST_CASE("cuda.nccl: an absent rank ends the wait of the others at the deadline") {
  std::atomic<bool> is_over = false;
  with_links(
      2,
      [&](ProcessGroup& group, Link& link) {
        const Numbers numbers(10);
        meet(*link, group.rank());
        if (group.rank() == 1) return await(is_over);
        const auto start = std::chrono::steady_clock::now();
        link->all_reduce(numbers.data(), 10, DType::float32);  // does not wait
        CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(250));
        const std::string said = message<TimeoutError>([] { synchronize(Device::cuda(0)); });
        CHECK(message<TimeoutError>([&] { link->check(); }) == said);
        CHECK(said ==
              "[all_reduce] all ranks must come within 0.3 s, got some that did not; see what "
              "the other ranks do, or raise the timeout");
        CHECK(message<TimeoutError>(
                  [&] { link->all_reduce(numbers.data(), 10, DType::float32); }) == said);
        CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(2));
        is_over = true;
      },
      0.3);
}

TEST_CASE("cuda.nccl: a rank that never comes to the first sum is given up at the deadline") {
  std::atomic<bool> is_over = false;
  with_links(
      2,
      [&](ProcessGroup& group, Link& link) {
        const Numbers numbers(10);
        if (group.rank() == 1) return await(is_over);
        const std::string said =
            message<TimeoutError>([&] { link->all_reduce(numbers.data(), 10, DType::float32); });
        CHECK(said.starts_with("[all_reduce] all ranks must come within 0.2 s"));
        CHECK(message<TimeoutError>([&] { link->check(); }) == said);
        is_over = true;
      },
      0.2);
}

TEST_CASE("cuda.nccl: nobody looks at a communicator while a group of it is open") {
  struct Endless final : nccl::Progress {
    void note_issued() override {}
    bool is_done() noexcept override { return is_over; }
    void note_lost(const std::exception_ptr&) noexcept override {}
    std::atomic<bool> is_over = false;
  };
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  Endless progress;
  nccl::Communicator communicator(id, *self_group(), progress);
  const Numbers numbers(1);
  for (int i = 0; i < 3; ++i) {
    communicator.issue("all_reduce", [&](ncclComm_t comm) {
      ncclAllReduce(numbers.data(), numbers.data(), 1, ncclFloat32, ncclSum, comm, cudaStream_t{});
      std::this_thread::sleep_for(std::chrono::milliseconds(30));  // the watcher could look here
    });
  }
  communicator.check_intact();
  progress.is_over = true;
}

TEST_CASE("cuda.nccl: a rank that aborts ends the wait of the others at once") {
  with_links(3, [&](ProcessGroup& group, Link& link) {
    const Numbers numbers(10);
    const auto start = std::chrono::steady_clock::now();
    if (group.rank() == 1) {
      link->abort("it has no gradients");
      CHECK(message<DistributedError>([&] { link->check(); }) ==
            "[nccl] a rank must stay in its group, got this one gone: it has no gradients");
    } else {
      const std::string said = message<DistributedError>([&] {
        link->all_reduce(numbers.data(), 10, DType::float32);
        synchronize(Device::cuda(group.rank()));
        link->check();
      });
      CHECK(said.starts_with(
          "[all_reduce] remote process exited or there was a network error: rank"));
    }
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
  });
}

TEST_CASE("cuda.nccl: a timeout that is set later counts for the links that a group has") {
  std::atomic<bool> is_over = false;
  run_ranks(2,
            [&](ProcessGroup& group) {
              const Device device = Device::cuda(group.rank());
              DeviceLink* const link = group.link(device);
              meet(*link, group.rank());
              group.set_timeout(0.3);
              const auto start = std::chrono::steady_clock::now();
              if (group.rank() == 1) return await(is_over);
              Tensor sum = Tensor::ones({10}).to(device);
              link->all_reduce(sum.mutable_data<float>(), 10, DType::float32);
              CHECK_THROWS_AS(sum.to(Device::cpu()), TimeoutError);
              CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(2));
              is_over = true;
            },
            {.timeout = 20});
}

TEST_CASE("cuda.nccl: a rank that leaves while it connects waits no more") {
  struct Absent final : DeviceTransport {
    std::atomic<bool>* is_over = nullptr;
    std::string identity(Device device) override {
      return accrue_cuda_transport()->identity(device);
    }
    std::string make_id() override { return accrue_cuda_transport()->make_id(); }
    Link connect(const std::string&, const ProcessGroup&, Device) override {
      while (!*is_over) std::this_thread::yield();
      return nullptr;
    }
  };
  std::atomic<bool> is_over = false;
  run_ranks(2,
            [&](ProcessGroup& group) {
              const auto twin = group.duplicate();
              if (group.rank() == 1) {
                Absent absent;
                absent.is_over = &is_over;
                CHECK_THROWS_AS(connect_devices(*twin, absent, Device::cuda(1)), DistributedError);
                return;
              }
              const auto start = std::chrono::steady_clock::now();
              std::thread beside([&] {
                std::this_thread::sleep_for(std::chrono::milliseconds(200));
                twin->leave("it was told to");
              });
              CHECK_THROWS_AS(twin->link(Device::cuda(0)), DistributedError);
              CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(3));
              is_over = true;
              beside.join();
            },
            {.timeout = 10});
}

TEST_CASE("cuda.nccl: work of two streams of a rank is ordered by marks alone") {
  with_links(2, [&](ProcessGroup& group, Link& link) {
    for (int round = 0; round < 20; ++round) {
      const Device device = Device::cuda(group.rank());
      Tensor sum = Tensor::full({1000}, 1 + group.rank()).to(device);
      const auto made = link->mark();
      std::shared_ptr<void> summed;
      std::thread beside([&] {
        const auto own = link->use_own_stream();
        link->wait_for(made);
        link->all_reduce(sum.mutable_data<float>(), 1000, DType::float32);
        summed = link->mark();
      });
      beside.join();
      link->wait_for(summed);
      CHECK(equal_bits(sum.to(Device::cpu()), Tensor::full({1000}, 3)));
    }
  });
}
