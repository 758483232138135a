// Process groups: what collectives give on one rank, and the arguments they refuse.
#include "accrue/dist/process_group.h"

#include "accrue/tests/dist/group_checks.h"
#include "accrue/tests/support/doctest.h"

#include <limits>

using namespace accrue;
using namespace accrue::dist;

TEST_CASE("dist.process_group: a group of one rank copies") {
  const auto group = self_group();
  CHECK(group->rank() == 0);
  CHECK(group->local_rank() == 0);
  CHECK(group->size() == 1);
  CHECK(group->backend() == std::string("self"));
  MESSAGE(test::check_collectives(*group), " calls");
}

TEST_CASE("dist.process_group: a root outside the group is refused") {
  const auto group = self_group();
  Tensor tensor = Tensor::zeros({2});
  CHECK_THROWS_WITH_AS(group->broadcast(tensor, 1),
                       "[broadcast] the root must lie in [0, 1), got 1; pass a rank of the group",
                       IndexError);
  CHECK_THROWS_AS(group->reduce(tensor, -1), IndexError);
}

TEST_CASE("dist.process_group: what cannot be reduced or dealt is refused before any data moves") {
  const auto group = self_group();
  Tensor half = Tensor::zeros({2}, DType::float16), flag = Tensor::zeros({2}, DType::boolean);
  CHECK_THROWS_WITH_AS(
      group->all_reduce(half),
      "[all_reduce] cannot reduce float16, which is for storage; convert with to()",
      DTypeError);
  CHECK_THROWS_WITH_AS(group->reduce(flag),
                       "[reduce] cannot sum bool; use max for any, min for all, or convert with "
                       "to()",
                       DTypeError);
  CHECK_THROWS_WITH_AS(group->reduce_scatter(Tensor::zeros({2, 3})),
                       "[reduce_scatter] the first dimension must be the number of ranks, 1, got "
                       "shape [2, 3]; pass one slice per rank",
                       ShapeError);
  CHECK_THROWS_AS(group->all_to_all(Tensor::scalar(1.0f)), ShapeError);
  Tensor row = Tensor::zeros({1}).expand({3});
  CHECK_THROWS_AS(group->broadcast(row), StateError);
  CHECK_THROWS_WITH_AS(group->all_to_all_bytes({"a", "b"}),
                       "[all_to_all_bytes] needs one string per rank, 1, got 2; pass an empty one "
                       "for a rank that gets nothing",
                       ValueError);
}

TEST_CASE("dist.process_group: a timeout must be a positive number") {
  CHECK_THROWS_WITH_AS(self_group({.timeout = 0}),
                       "[set_timeout] the timeout must be a positive number of seconds, got 0; "
                       "pass how long to wait for an absent rank",
                       ValueError);
  CHECK_THROWS_AS(self_group({.timeout = std::numeric_limits<double>::quiet_NaN()}), ValueError);
}

TEST_CASE("dist.process_group: ranks whose calls differ are told what each rank called") {
  const Call sum{5, CallKind::all_reduce, DType::float32, 0, 3};
  const Call root{5, CallKind::broadcast, DType::int64, 1, 2};
  const std::vector<Call> same(3, sum);
  CHECK_NOTHROW(check_same(same));
  const std::vector<Call> calls{sum, root, sum};
  CHECK_THROWS_WITH_AS(check_same(calls),
                       "[dist] all ranks must make the same call, got rank 0, 2: call 5, "
                       "all_reduce(sum) of 3 float32; rank 1: call 5, broadcast(from rank 1) of 2 "
                       "int64; issue collectives in one order with equal shapes on all ranks",
                       MismatchError);
}
