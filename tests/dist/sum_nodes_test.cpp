// Ordered sums on threads: the bits of a literal tree, and the nodes that are refused.
#include "accrue/dist/sum_nodes.h"

#include "accrue/dist/threads.h"
#include "accrue/tests/dist/sum_checks.h"
#include "accrue/tests/support/doctest.h"

#include <atomic>
#include <mutex>
#include <set>

using namespace accrue;
using namespace accrue::dist;

namespace {

/// The texts that the ranks' exceptions had; one when all said the same.
template <class Type, class Body>
std::set<std::string> messages(int size, const Body& body) {
  std::set<std::string> said;
  std::mutex mutex;
  run_ranks(size, [&](ProcessGroup& group) {
    CHECK_THROWS_AS(
        [&] {
          try {
            body(group);
          } catch (const Type& error) {
            const std::lock_guard lock(mutex);
            said.insert(error.what());
            throw;
          }
        }(),
        Type);
  });
  return said;
}

TreeNode node(int level, int index) { return {level, index, Tensor::ones({2})}; }

}  // namespace

TEST_CASE("dist.sum_nodes: the bits are those of a literal tree, whoever holds which nodes") {
  std::atomic<int> sums = 0;
  for (int size = 1; size <= 8; ++size) {
    run_ranks(size, [&](ProcessGroup& group) { sums += test::check_sum_nodes(group); });
  }
  MESSAGE(sums.load(), " sums");
}

TEST_CASE("dist.sum_nodes: every algorithm gives the same bits for one node per rank") {
  std::atomic<int> sums = 0;
  for (const int size : {1, 2, 4, 8}) {
    run_ranks(size, [&](ProcessGroup& group) { sums += test::check_one_node_each(group); });
  }
  MESSAGE(sums.load(), " sums");
}

TEST_CASE("dist.sum_nodes: many tensors are summed at once, each with nodes of its own") {
  std::atomic<int> sums = 0;
  for (int size = 1; size <= 8; ++size) {
    run_ranks(size, [&](ProcessGroup& group) { sums += test::check_many_tensors(group); });
  }
  MESSAGE(sums.load(), " sums");
}

TEST_CASE("dist.sum_nodes: swapped nodes give other bits") {
  const auto sum_of = [](bool swap) {
    Tensor result;
    run_ranks(3, [&](ProcessGroup& group) {
      constexpr float kValues[] = {1e8f, 1.0f, -1e8f, 1.0f};
      std::vector<TreeNode> nodes;
      for (int lane = 0; lane < 4; ++lane) {
        const int value = swap && lane % 3 > 0 ? 3 - lane : lane;
        if (lane % 3 == group.rank()) {
          nodes.push_back({0, lane, Tensor::scalar(kValues[value])});
        }
      }
      Tensor sum = Tensor::empty({});
      sum_nodes(group, 4, nodes, sum);
      if (group.rank() == 0) result = sum;
    });
    return result.item<float>();
  };
  CHECK(sum_of(false) == 0.0f);
  CHECK(sum_of(true) == 2.0f);
}

TEST_CASE("dist.sum_nodes: float64 is summed too") {
  run_ranks(2, [](ProcessGroup& group) {
    Tensor sum = Tensor::zeros({3}, DType::float64);
    sum_nodes(group, 2, {{0, group.rank(), Tensor::full({3}, 0.1, DType::float64)}}, sum);
    CHECK(equal_bits(sum, Tensor::full({3}, 0.1 + 0.1, DType::float64)));
  });
}

TEST_CASE("dist.sum_nodes: nodes that are no part of one tree are refused alike on all ranks") {
  const auto said = [](int lanes, const std::vector<std::vector<TreeNode>>& nodes) {
    return messages<ValueError>(static_cast<int>(nodes.size()), [&](ProcessGroup& group) {
      Tensor sum = Tensor::zeros({2});
      sum_nodes(group, lanes, nodes[static_cast<std::size_t>(group.rank())], sum);
    });
  };
  CHECK(said(8, {{node(2, 1)}, {node(0, 4)}}) ==
        std::set<std::string>{"[sum_nodes] each lane must lie in one node, got lane 4 in (level 2, "
                              "index 1) of rank 0 and (level 0, index 4) of rank 1; give each lane "
                              "to one rank"});
  CHECK(said(8, {{}, {node(3, 1)}}) ==
        std::set<std::string>{"[sum_nodes] nodes must lie in the tree over 8 lanes, got (level 3, "
                              "index 1) of rank 1; pass level and index of whole subtrees"});
  CHECK(said(6, {{}, {}}) ==
        std::set<std::string>{
            "[sum_nodes] lanes must be a power of two in [1, 32768], got 6; use 8, the default"});
  CHECK(said(8, {{node(-1, 0)}, {}}).size() == 1);
  CHECK(said(8, {{node(0, -1)}, {}}).size() == 1);
  CHECK(said(8, {{node(0, 0), node(0, 0)}, {}}).size() == 1);
}

TEST_CASE("dist.sum_nodes: doubling without one equal node per rank is refused") {
  const auto said = messages<ValueError>(2, [](ProcessGroup& group) {
    Tensor sum = Tensor::zeros({2});
    sum_nodes(group, 4, {node(group.rank(), 1)}, sum, SumAlgorithm::doubling);
  });
  CHECK(said == std::set<std::string>{
                    "[sum_nodes] doubling needs a power of two of ranks that each hold one node of "
                    "equal size, got other nodes; use automatic or all_to_all"});
}

TEST_CASE("dist.sum_nodes: ranks with other lanes or other sizes all learn of it") {
  const auto lanes = messages<MismatchError>(3, [](ProcessGroup& group) {
    Tensor sum = Tensor::zeros({2});
    sum_nodes(group, group.rank() == 1 ? 8 : 4, {}, sum);
  });
  CHECK(lanes == std::set<std::string>{
                     "[sum_nodes] lanes, algorithm and sizes of the tensors must be equal on all "
                     "ranks, got others on rank 1 than on rank 0; build the same model with the "
                     "same options everywhere"});
  const auto sizes = messages<MismatchError>(2, [](ProcessGroup& group) {
    std::vector<NodeSum> sums(2);
    sums[0].sum = Tensor::zeros({1 + group.rank()});
    sums[1].sum = Tensor::zeros({2 - group.rank()});
    sum_nodes(group, 8, sums);
  });
  CHECK(sizes.size() == 1);
}

TEST_CASE("dist.sum_nodes: tensors of another dtype, shape or layout are refused") {
  const auto group = self_group();
  Tensor sum = Tensor::zeros({3}), counts = Tensor::zeros({3}, DType::int64);
  CHECK_THROWS_WITH_AS(sum_nodes(*group, 8, {node(0, 0)}, sum),
                       "[sum_nodes] a partial must have its sum's shape [3], got [2]; reshape it",
                       ShapeError);
  CHECK_THROWS_WITH_AS(
      sum_nodes(*group, 8, {}, counts),
      "[sum_nodes] sums must be float32 or float64, all the same, got int64; convert with to()",
      DTypeError);
  CHECK_THROWS_WITH_AS(
      sum_nodes(*group, 8, {{0, 0, counts}}, sum),
      "[sum_nodes] a partial must have its sum's dtype float32, got int64; convert with to()",
      DTypeError);
  Tensor column = Tensor::zeros({3, 2}).select(1, 0);
  CHECK_THROWS_WITH_AS(sum_nodes(*group, 8, {}, column),
                       "[sum_nodes] sums must be contiguous, got strides [2]; pass a dense tensor",
                       ShapeError);
}
