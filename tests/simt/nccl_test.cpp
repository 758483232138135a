// The simulated NCCL: data arrive, and what NCCL refuses or waits for is refused or waited for.
#include "accrue/kernels/simt/devices.h"
#include "accrue/kernels/simt/streams.h"
#include "accrue/tests/support/doctest.h"

#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace {

/// One rank's communicator, initialised as the project does.
struct Rank {
  ncclComm_t comm = nullptr;
  int rank = 0;

  ncclResult_t start(int size, const ncclUniqueId& id, int device) {
    accrue::simt::set_device(device);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    CHECK(ncclCommInitRankConfig(&comm, size, id, rank, &config) == ncclInProgress);
    return wait();
  }
  ncclResult_t wait() const {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
      ncclCommGetAsyncError(comm, &state);
      std::this_thread::yield();
    }
    return state;
  }
};

/// What is queued there runs while the caller polls; calls on no stream wait.
cudaStream_t new_stream() { return reinterpret_cast<cudaStream_t>(accrue::simt::make_stream()); }

/// Calls body(rank) on a thread per rank, each on a device of its own.
template <class Body>
void with_ranks(int size, const Body& body) {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      Rank rank{nullptr, r};
      CHECK(rank.start(size, id, r) == ncclSuccess);
      body(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

float value_of(int rank, std::size_t i) {
  return static_cast<float>(rank * 1000) + static_cast<float>(i % 777);
}

std::vector<float> values_of(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(rank, i);
  return values;
}

}  // namespace

TEST_CASE("simt.nccl: sends and receives of a group cross, whatever their size and order") {
  for (const int size : {1, 2, 4}) {
    with_ranks(size, [&](Rank& me) {
      for (const std::size_t count : {0, 1, 70000}) {
        const std::vector<float> mine = values_of(me.rank, count);
        std::vector<std::vector<float>> got(static_cast<std::size_t>(size));
        ncclGroupStart();
        for (int r = 0; r < size; ++r) {
          got[static_cast<std::size_t>(r)].resize(count);
          ncclRecv(got[static_cast<std::size_t>(r)].data(), count, ncclFloat32, r, me.comm, {});
        }
        for (int r = size; r-- > 0;) ncclSend(mine.data(), count, ncclFloat32, r, me.comm, {});
        CHECK(ncclGroupEnd() == ncclInProgress);
        CHECK(me.wait() == ncclSuccess);
        for (int r = 0; r < size; ++r) {
          CHECK(got[static_cast<std::size_t>(r)] == values_of(r, count));
        }
      }
      ncclCommDestroy(me.comm);
    });
  }
}

TEST_CASE("simt.nccl: a sum in place is every rank's") {
  constexpr std::size_t kCount = 30001;
  with_ranks(3, [&](Rank& me) {
    std::vector<float> sum = values_of(me.rank, kCount);
    ncclGroupStart();
    ncclAllReduce(sum.data(), sum.data(), kCount, ncclFloat32, ncclSum, me.comm, nullptr);
    ncclGroupEnd();
    CHECK(me.wait() == ncclSuccess);
    bool is_right = true;
    for (std::size_t i = 0; i < kCount; ++i)
      is_right &= sum[i] == value_of(0, i) + value_of(1, i) + value_of(2, i);
    CHECK(is_right);
    ncclCommDestroy(me.comm);
  });
}

TEST_CASE("simt.nccl: two ranks on one device are refused with NCCL's words") {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      Rank rank{nullptr, r};
      CHECK(rank.start(2, id, 5) == ncclInvalidUsage);
      CHECK(std::string(ncclGetLastError(rank.comm)) ==
            "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 5");
      ncclCommAbort(rank.comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("simt.nccl: an absent rank is waited for until the communicator is aborted") {
  with_ranks(2, [&](Rank& me) {
    static std::atomic<bool> is_aborted;
    is_aborted = false;
    float x = 0;
    if (me.rank == 0) {
      std::thread watchdog([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        is_aborted = true;
        ncclCommAbort(me.comm);
      });
      ncclRecv(&x, 1, ncclFloat32, 1, me.comm, nullptr);
      CHECK(is_aborted);
      watchdog.join();
    } else {
      while (!is_aborted) std::this_thread::yield();
      ncclCommAbort(me.comm);
    }
  });
}

TEST_CASE("simt.nccl: a rank whose process died shows as an error of the others") {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  float x = 0;
  const pid_t child = fork();
  if (child == 0) {
    Rank dying{nullptr, 1};
    dying.start(2, id, 1);
    ncclSend(&x, 1, ncclFloat32, 0, dying.comm, nullptr);
    _exit(0);
  }
  Rank rank{nullptr, 0};
  CHECK(rank.start(2, id, 0) == ncclSuccess);
  ncclRecv(&x, 1, ncclFloat32, 1, rank.comm, nullptr);
  CHECK(rank.wait() == ncclSuccess);
  waitpid(child, nullptr, 0);
  ncclRecv(&x, 1, ncclFloat32, 1, rank.comm, new_stream());
  ncclResult_t state = ncclSuccess;
  while (state == ncclSuccess || state == ncclInProgress) ncclCommGetAsyncError(rank.comm, &state);
  CHECK(state == ncclRemoteError);
  CHECK(std::string(ncclGetLastError(rank.comm)) == "rank 1 left or died");
  ncclCommAbort(rank.comm);
}

TEST_CASE("simt.nccl: a call before the last one is polled, and a size that differs, are refused") {
  with_ranks(2, [&](Rank& me) {
    float x[2] = {};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId alone;
    ncclGetUniqueId(&alone);
    ncclComm_t early = nullptr;
    config.blocking = 0;
    CHECK(ncclCommInitRankConfig(&early, 1, alone, 0, &config) == ncclInProgress);
    CHECK(ncclSend(x, 1, ncclFloat32, 0, early, nullptr) == ncclInvalidUsage);
    CHECK(Rank{early, 0}.wait() == ncclSuccess);
    CHECK(ncclAllReduce(x, x, 1, ncclUint8, ncclSum, early, nullptr) == ncclInvalidArgument);
    ncclCommDestroy(early);

    if (me.rank == 0) {
      ncclSend(x, 1, ncclFloat32, 1, me.comm, nullptr);
      CHECK(me.wait() == ncclSuccess);
      ncclRecv(x, 1, ncclFloat32, 1, me.comm, nullptr);  // until rank 1 has seen its error
      CHECK(me.wait() == ncclSuccess);
      ncclCommDestroy(me.comm);
    } else {
      ncclSend(x, 1, ncclFloat32, 0, me.comm, nullptr);
      CHECK(me.wait() == ncclSuccess);
      ncclRecv(x, 2, ncclFloat32, 0, me.comm, new_stream());
      ncclResult_t state = ncclSuccess;
      while (state == ncclSuccess || state == ncclInProgress) {
        ncclCommGetAsyncError(me.comm, &state);
      }
      CHECK(state == ncclInvalidUsage);
      CHECK(std::string(ncclGetLastError(me.comm)) ==
            "a receive of 8 bytes met a send of 4 bytes of rank 0");
      ncclCommAbort(me.comm);
    }
  });
}
