// The checks of process groups between processes: mpirun -n W mpi_ranks [--messages].
//
// Every rank runs every test case. A case that breaks a group breaks a duplicate.
#include "accrue/dist/world.h"
#include "accrue/tests/dist/bucketer_checks.h"
#include "accrue/tests/dist/group_checks.h"
#include "accrue/tests/dist/messages.h"
#include "accrue/tests/dist/sum_checks.h"
#include "accrue/tests/support/doctest.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>

using namespace accrue;
using namespace accrue::dist;
using test::message;

namespace {

/// Shared memory, or messages where ACCRUE_TEST_MESSAGES is set.
ProcessGroup& group() {
  static const std::shared_ptr<ProcessGroup> ranks =
      init({.timeout = 60, .shared_memory = !std::getenv("ACCRUE_TEST_MESSAGES")});
  return *ranks;
}

}  // namespace

TEST_CASE("dist.mpi_ranks: the world is what mpirun started") {
  REQUIRE(group().size() == std::atoi(std::getenv("OMPI_COMM_WORLD_SIZE")));
  CHECK(group().rank() == std::atoi(std::getenv("OMPI_COMM_WORLD_RANK")));
  CHECK(group().local_rank() == std::atoi(std::getenv("OMPI_COMM_WORLD_LOCAL_RANK")));
  CHECK(group().backend() == std::string("mpi"));
  CHECK(group().shares_memory() == !std::getenv("ACCRUE_TEST_MESSAGES"));
  CHECK(world().get() == &group());
  CHECK_THROWS_AS(init({}), StateError);
}

TEST_CASE("dist.mpi_ranks: every collective is right") { test::check_collectives(group()); }

TEST_CASE("dist.mpi_ranks: ordered sums and rings are those of threads") {
  test::check_sum_nodes(group());
  test::check_many_tensors(group());
  test::check_ring(group());
  if (std::has_single_bit(static_cast<unsigned>(group().size())))
    test::check_one_node_each(group());
}

TEST_CASE("dist.mpi_ranks: buckets are those of threads") { test::check_bucketer(group()); }

TEST_CASE("dist.mpi_ranks: a rank that gives its window up is named to the others at once") {
  auto bucketer = std::make_unique<Bucketer>(
      group(), std::vector<BucketParameter>{{"w", {3}}}, &test::sum_of_weights);
  bucketer->begin(4, "1");
  bucketer->ready(0, {});
  if (group().rank() == 1) bucketer.reset();
  const std::string said =
      message<DistributedError>([&] { group().rank() == 1 ? 0 : bucketer->finish(); });
  const bool is_named = said.find("got rank 1 gone: it gave its window up") != std::string::npos;
  CHECK(is_named == (group().rank() != 1));
  group().barrier();
}

TEST_CASE("dist.mpi_ranks: calls that differ end in one text on all ranks") {
  const auto twin = group().duplicate();
  Tensor tensor = Tensor::zeros({3 + group().rank() / 2 * 4});
  const std::string said = message<MismatchError>([&] {
    if (twin->rank() == 1) twin->broadcast(tensor);
    twin->all_reduce(tensor);
  });
  CHECK(
      said.starts_with("[dist] all ranks must make the same call, got rank 0: call 1, "
                       "all_reduce(sum) of 3 float32; rank 1: call 1, broadcast(from rank 0)"));
  for (const std::string& other : group().all_gather_bytes(said)) CHECK(other == said);
  CHECK(message<MismatchError>([&] { twin->barrier(); }) == said);
}

TEST_CASE("dist.mpi_ranks: what a failed step of messages moved does not reach the caller") {
  if (group().shares_memory() || group().size() < 3) {
    MESSAGE("left out: needs 3 ranks that send messages");
    return;
  }
  const auto twin = group().duplicate();
  twin->set_timeout(0.3);
  const auto size = static_cast<std::size_t>(twin->size());
  const std::vector<std::span<const std::byte>> nothing(size);
  const std::vector<std::span<std::byte>> nowhere(size);
  twin->begin({.kind = CallKind::barrier}, {nothing, nowhere});
  if (group().rank() == 2) group().barrier();  // where the others come once they have given it up
  const std::byte sent{7};
  std::vector<std::byte> received(size);
  std::vector<std::span<std::byte>> incoming;
  for (std::byte& byte : received) incoming.emplace_back(&byte, 1);
  const std::span<const std::byte> outgoing(&sent, 1);
  CHECK(!message<TimeoutError>([&] { twin->move({{&outgoing, 1}, incoming}); }).empty());
  for (const std::byte byte : received) CHECK(byte == std::byte{0});
  if (group().rank() != 2) group().barrier();
}

TEST_CASE("dist.mpi_ranks: a duplicate takes the memory of one that has ended, broken or not") {
  const auto num_mappings = [] {
    std::ifstream maps("/proc/self/maps");
    return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
  };
  const auto use = [](ProcessGroup& twin, std::int64_t size) {
    Tensor tensor = Tensor::ones({size});
    twin.all_reduce(tensor);
    CHECK(tensor.to_vector<float>()[0] == static_cast<float>(twin.size()));
  };
  const auto kept = group().duplicate();
  use(*group().duplicate(), 3);
  const auto before = num_mappings();
  for (int i = 0; i < 20; ++i) {
    const auto twin = group().duplicate();
    use(*twin, 3);
    // The last call breaks it; no rank comes to another before all have its error.
    CHECK_THROWS_AS(use(*twin, 3 + twin->rank()), MismatchError);
    use(*kept, 5);
  }
  if (group().shares_memory()) CHECK(num_mappings() == before);
}

TEST_CASE("dist.mpi_ranks: an absent rank is named within the deadline and half a second") {
  const bool is_late = group().rank() == 1;
  double least = 1e9;  // of three: other programs may keep the processor
  for (int i = 0; i < 3; ++i) {
    const auto twin = group().duplicate();
    twin->set_timeout(0.3);
    group().barrier();
    const auto start = std::chrono::steady_clock::now();
    if (is_late) group().barrier();  // where the others come once they have given it up
    Tensor tensor = Tensor::zeros({3});
    const std::string said = message<TimeoutError>([&] { twin->all_reduce(tensor); });
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
    least = std::min(least, waited.count());
    CHECK(said ==
          "[all_reduce] all ranks must come within 0.3 s, got nothing from rank 1 for call 1, "
          "all_reduce(sum) of 3 float32; see what that rank does, or raise the timeout");
    if (!is_late) group().barrier();
  }
  CHECK((is_late || least < 0.8));
}
