// Ranks as threads: collectives up to 8 ranks, and what happens when a rank is wrong, late or gone.
#include "accrue/dist/threads.h"

#include "accrue/autograd/grad_mode.h"
#include "accrue/core/generator.h"
#include "accrue/kernels/elementwise.h"
#include "accrue/tests/dist/group_checks.h"
#include "accrue/tests/dist/messages.h"
#include "accrue/tests/support/doctest.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <thread>

using namespace accrue;
using namespace accrue::dist;
using test::messages;

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("dist.threads: every collective is right on 1 to 8 ranks") {
  std::atomic<int> calls = 0;
  for (int size = 1; size <= 8; ++size) {
    std::atomic<int> ranks = 0;
    run_ranks(size, [&](ProcessGroup& group) {
      CHECK(group.size() == size);
      CHECK(group.local_rank() == group.rank());
      CHECK(group.backend() == std::string("threads"));
      ranks |= 1 << group.rank();
      calls += test::check_collectives(group);
    });
    CHECK(ranks == (1 << size) - 1);
  }
  MESSAGE(calls.load(), " calls");
}

TEST_CASE("dist.threads: calls that differ end in one text on all ranks") {
  const std::vector<std::string> said = messages<MismatchError>(3, [](ProcessGroup& group) {
    Tensor tensor = Tensor::zeros({group.rank() == 2 ? 5 : 4});
    group.barrier();
    if (group.rank() == 0) {
      group.broadcast(tensor);
    } else {
      group.all_reduce(tensor);
    }
  });
  const std::string wanted =
      "[dist] all ranks must make the same call, got rank 0: call 2, broadcast(from rank 0) of 4 "
      "float32; rank 1: call 2, all_reduce(sum) of 4 float32; rank 2: call 2, all_reduce(sum) of 5 "
      "float32; issue collectives in one order with equal shapes on all ranks";
  CHECK(said == std::vector<std::string>(3, wanted));
}

TEST_CASE("dist.threads: each way in which two calls can differ is found") {
  using Act = void (*)(ProcessGroup&);
  const std::array<Act, 9> acts = {
      [](ProcessGroup& g) { g.barrier(); },
      [](ProcessGroup& g) { g.all_gather_bytes("text"); },
      [](ProcessGroup& g) { g.all_gather(Tensor::zeros({4})); },
      [](ProcessGroup& g) { g.all_gather(Tensor::zeros({5})); },
      [](ProcessGroup& g) { g.all_gather(Tensor::zeros({4}, DType::int32)); },
      [](ProcessGroup& g) {
        Tensor t = Tensor::zeros({4});
        g.broadcast(t, 0);
      },
      [](ProcessGroup& g) {
        Tensor t = Tensor::zeros({4});
        g.broadcast(t, 1);
      },
      [](ProcessGroup& g) {
        Tensor t = Tensor::zeros({4});
        g.reduce(t, 0, ReduceOp::max);
      },
      [](ProcessGroup& g) {
        Tensor t = Tensor::zeros({4});
        g.reduce(t, 0, ReduceOp::min);
      },
  };
  int pairs = 0;
  for (std::size_t i = 0; i < acts.size(); ++i) {
    for (std::size_t j = 0; j < acts.size(); ++j, ++pairs) {
      const auto said = messages<MismatchError>(
          2, [&](ProcessGroup& group) { acts[group.rank() == 0 ? i : j](group); });
      CHECK((said[0] == "") == (i == j));
      CHECK(said[0] == said[1]);
    }
  }
  MESSAGE(pairs, " pairs");
}

TEST_CASE("dist.threads: an absent rank is named within the deadline and half a second") {
  for (const int size : {2, 3, 8}) {
    std::atomic<int> timed_out = 0;
    const auto said = messages<TimeoutError>(
        size,
        [&](ProcessGroup& group) {
          Tensor tensor = Tensor::zeros({3});
          if (group.rank() == 1) {  // late: it finds the group broken
            while (timed_out < size - 1) std::this_thread::yield();
            group.all_reduce(tensor);
          }
          const auto start = std::chrono::steady_clock::now();
          try {
            group.all_reduce(tensor);
          } catch (const TimeoutError&) {
            CHECK(seconds_since(start) >= 0.1);  // another rank may have begun earlier
            CHECK(seconds_since(start) < 0.7);
            ++timed_out;
            throw;
          }
        },
        {.timeout = 0.2});
    CHECK(said == std::vector<std::string>(
                      static_cast<std::size_t>(size),
                      "[all_reduce] all ranks must come within 0.2 s, got nothing from rank 1 for "
                      "call 1, all_reduce(sum) of 3 float32; see what that rank does, or raise the "
                      "timeout"));
  }
}

TEST_CASE("dist.threads: a rank that throws is named to those who wait, and its error rethrown") {
  std::mutex mutex;
  std::vector<std::string> said;
  const auto run = [&] {
    run_ranks(3, [&](ProcessGroup& group) {
      ACCRUE_CHECK(group.rank() != 2, ValueError, "load", "must work, got nothing; try again");
      try {
        group.barrier();
      } catch (const DistributedError& error) {
        const std::lock_guard lock(mutex);
        said.emplace_back(error.what());
        throw;
      }
    });
  };
  CHECK_THROWS_WITH_AS(run(), "[load] must work, got nothing; try again", ValueError);
  CHECK(said == std::vector<std::string>(
                    2,
                    "[barrier] all ranks must come to call 1, barrier, got rank 2 gone: it threw "
                    "[load] must work, got nothing; try again; make all ranks issue the same "
                    "collectives"));
}

TEST_CASE("dist.threads: a rank that returns early is named, also on a duplicate") {
  std::array<std::shared_ptr<ProcessGroup>, 2> twins;
  const auto said = messages<DistributedError>(2, [&](ProcessGroup& group) {
    auto& twin = twins[static_cast<std::size_t>(group.rank())] = group.duplicate();
    if (group.rank() == 0) twin->barrier();
  });
  CHECK(said[0] ==
        "[barrier] all ranks must come to call 1, barrier, got rank 1 gone: it returned; make all "
        "ranks issue the same collectives");
  CHECK(said[1] == "");
}

TEST_CASE("dist.threads: a broken group repeats its error") {
  const auto said = messages<MismatchError>(2, [](ProcessGroup& group) {
    Tensor tensor = Tensor::zeros({group.rank() + 1});
    CHECK_THROWS_AS(group.all_reduce(tensor), MismatchError);
    group.barrier();
  });
  CHECK(said[0] == said[1]);
  CHECK(said[0].find("all_reduce(sum) of 2 float32") != std::string::npos);
}

TEST_CASE("dist.threads: a duplicate works beside its group, from another thread") {
  run_ranks(3, [](ProcessGroup& group) {
    const auto twin = group.duplicate();
    std::thread beside([&] {
      for (int i = 0; i < 50; ++i) {
        Tensor tensor = Tensor::full({100}, i);
        twin->all_reduce(tensor);
        CHECK(equal_bits(tensor, Tensor::full({100}, 3 * i)));
      }
    });
    for (int i = 0; i < 50; ++i) {
      Tensor tensor = Tensor::full({10}, i);
      group.all_reduce(tensor, ReduceOp::max);
      CHECK(equal_bits(tensor, Tensor::full({10}, i)));
    }
    beside.join();
  });
}

TEST_CASE("dist.threads: a duplicate ends with its handle, which the other ranks hear") {
  const auto said = messages<DistributedError>(2, [](ProcessGroup& group) {
    auto twin = group.duplicate();
    twin->barrier();
    if (group.rank() == 0) return twin->barrier();
    const std::weak_ptr<ProcessGroup> handle = twin;
    twin.reset();
    CHECK(handle.expired());
  });
  CHECK(said[0].find("got rank 1 gone: it dropped its handle") != std::string::npos);
}

TEST_CASE("dist.threads: duplicates that have ended leave no memory behind") {
  if (std::getenv("ACCRUE_QUICK")) {
    MESSAGE("left out: builds with sanitizers keep freed memory");
    return;
  }
  const auto pages = [] {
    std::size_t count = 0;
    std::ifstream("/proc/self/statm") >> count;
    return count;
  };
  constexpr int kDuplicates = 300;  // of 1 MiB each
  const std::size_t before = pages();
  std::size_t grown = 0;
  run_ranks(2, [&](ProcessGroup& group) {
    for (int i = 0; i < kDuplicates; ++i) group.duplicate()->barrier();
    group.barrier();
    if (group.rank() == 0) grown = pages() - std::min(before, pages());
    group.barrier();
  });
  MESSAGE(grown, " pages");
  CHECK(grown * 4 < (kDuplicates << 10) / 2);
}

TEST_CASE("dist.threads: a number of ranks below 1 is refused") {
  CHECK_THROWS_WITH_AS(run_ranks(0, [](ProcessGroup&) {}),
                       "[run_ranks] the number of ranks must be >= 1, got 0; pass how many threads "
                       "to start",
                       ValueError);
}

TEST_CASE("dist.threads: what torch keeps per process is kept per rank, and kernels run at once") {
  const auto draw = [](std::uint64_t seed) {
    manual_seed(seed);
    Tensor x = Tensor::empty({20000}), y = Tensor::empty({20000});
    default_generator().uniform(std::span(x.mutable_data<float>(), 20000), 0, 1);
    kernels::launch_cpu(kernels::ScalarForward{kernels::BinaryOp::mul, x, 3.0, y});
    return y;
  };
  std::vector<Tensor> wanted;
  for (int r = 0; r < 4; ++r) wanted.push_back(draw(static_cast<std::uint64_t>(r)));
  run_ranks(4, [&](ProcessGroup& group) {
    const auto seed = static_cast<std::uint64_t>(group.rank());
    CHECK(grad_enabled());
    const auto no_grad = group.rank() % 2 ? std::make_unique<NoGrad>() : nullptr;
    for (int i = 0; i < 20; ++i) {
      group.barrier();
      CHECK(grad_enabled() == (group.rank() % 2 == 0));
      CHECK(equal_bits(draw(seed), wanted[static_cast<std::size_t>(group.rank())]));
    }
  });
}
