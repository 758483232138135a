#include "accrue/tests/dist/sum_checks.h"

#include "accrue/core/generator.h"
#include "accrue/dist/ring.h"
#include "accrue/tests/support/doctest.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <span>

namespace accrue::test {

using dist::NodeSum;
using dist::ProcessGroup;
using dist::sum_nodes;
using dist::SumAlgorithm;

namespace {

constexpr std::int64_t kLengths[] = {0, 1, 7, 1000, 70000};

/// Under sanitizers the simulator takes minutes for the longest tensors, whose blocks do the same
/// as those of the second longest.
bool is_quick(Device device) { return !device.is_cpu() && std::getenv("ACCRUE_QUICK") != nullptr; }

std::span<const std::int64_t> lengths_on(Device device) {
  return std::span(kLengths).first(std::size(kLengths) - (is_quick(device) ? 1 : 0));
}

struct DealtNode {
  TreeNode node;
  int rank = 0;
};

/// A whole tree, the same on all ranks: its nodes, who holds them, and their literal sum.
struct Tree {
  std::vector<DealtNode> nodes;
  Tensor sum;

  std::vector<TreeNode> nodes_of(int rank, Device device) const {
    std::vector<TreeNode> result;
    for (const auto& [node, holder] : nodes) {
      if (holder == rank) result.push_back({node.level, node.index, node.partial.to(device)});
    }
    return result;
  }
};

/// Values that tell one order from another, among them -0, infinities and NaN.
Tensor partial_of(Generator& generator, std::int64_t length) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values(static_cast<std::size_t>(length));
  const auto seed = static_cast<std::uint32_t>(generator.random_());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t bits = (seed + static_cast<std::uint32_t>(i)) * 2654435761U;
    const std::uint32_t kind = bits >> 28;
    values[i] = static_cast<float>(static_cast<std::int32_t>(bits << 4)) * 0x1p-20f;
    if (kind == 0 || i % 5 == 0) values[i] = -0.0f;
    if (kind == 1) values[i] *= 1e8f;
    if (bits % 97 == 0) values[i] = bits % 2 ? kInfinity : -kInfinity;
    if (bits % 101 == 0) values[i] = std::numeric_limits<float>::quiet_NaN();
  }
  return Tensor::from(values, {length});
}

Tensor add(const Tensor& left, const Tensor& right) {
  std::vector<float> sum = left.to_vector<float>();
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += right.data<float>()[i];
  return Tensor::from(sum, left.shape());
}

/// Cuts the tree at random into nodes, absent lanes and subtrees; returns the literal sum.
Tensor cut(Generator& generator, int level, int index, std::int64_t length, int size, Tree& tree) {
  const auto draw = [&](int count) { return static_cast<int>(generator.random_() % count); };
  if (level == 0 || draw(3) == 0) {
    if (draw(4) == 0) return Tensor::zeros({length});
    Tensor partial = partial_of(generator, length);
    tree.nodes.push_back({{level, index, partial}, draw(size)});
    return partial;
  }
  const Tensor left = cut(generator, level - 1, 2 * index, length, size, tree);
  return add(left, cut(generator, level - 1, 2 * index + 1, length, size, tree));
}

Tree random_tree(std::uint64_t seed, int lanes, std::int64_t length, int size) {
  Generator generator;
  generator.manual_seed(seed);
  Tree tree;
  tree.sum = cut(generator, std::countr_zero(static_cast<unsigned>(lanes)), 0, length, size, tree);
  return tree;
}

void check(
    ProcessGroup& group, const Tree& tree, int lanes, SumAlgorithm algorithm, Device device) {
  Tensor sum = Tensor::full(tree.sum.shape(), 7).to(device);
  sum_nodes(group, lanes, tree.nodes_of(group.rank(), device), sum, algorithm);
  CHECK(sum.device() == device);
  CHECK(equal_bits(sum.to(Device::cpu()), tree.sum));
}

}  // namespace

int check_sum_nodes(ProcessGroup& group, Device device) {
  int sums = 0;
  std::uint64_t seed = 0;
  for (const int lanes : {1, 2, 4, 8, 16}) {
    for (const std::int64_t length : lengths_on(device)) {
      for (int cuts = 0; cuts < 3; ++cuts) {
        const Tree tree = random_tree(++seed, lanes, length, group.size());
        for (const SumAlgorithm algorithm :
             {SumAlgorithm::automatic, SumAlgorithm::all_to_all, SumAlgorithm::gather}) {
          check(group, tree, lanes, algorithm, device);
          ++sums;
        }
      }
    }
  }
  return sums;
}

int check_one_node_each(ProcessGroup& group, Device device) {
  int sums = 0;
  for (int lanes = group.size(); lanes <= 16; lanes *= 2) {
    for (const std::int64_t length : lengths_on(device)) {
      Generator generator;
      generator.manual_seed(static_cast<std::uint64_t>(length + lanes));
      Tree tree;
      std::vector<Tensor> level;
      for (int r = 0; r < group.size(); ++r) {
        level.push_back(partial_of(generator, length));
        tree.nodes.push_back(
            {{std::countr_zero(static_cast<unsigned>(lanes / group.size())), r, level.back()}, r});
      }
      for (; level.size() > 1; level.resize(level.size() / 2)) {
        for (std::size_t i = 0; i < level.size() / 2; ++i) {
          level[i] = add(level[2 * i], level[2 * i + 1]);
        }
      }
      tree.sum = level[0];
      for (const SumAlgorithm algorithm : {SumAlgorithm::automatic,
                                           SumAlgorithm::all_to_all,
                                           SumAlgorithm::doubling,
                                           SumAlgorithm::gather}) {
        check(group, tree, lanes, algorithm, device);
        ++sums;
      }
    }
  }
  return sums;
}

int check_many_tensors(ProcessGroup& group, Device device) {
  int sums = 0;
  for (const SumAlgorithm algorithm :
       {SumAlgorithm::automatic, SumAlgorithm::all_to_all, SumAlgorithm::gather}) {
    std::vector<Tree> trees;
    std::vector<NodeSum> calls;
    for (std::int64_t length : {3, 0, 70000, 1, 1000, 7, 100000, 0}) {
      if (is_quick(device)) length = std::min<std::int64_t>(length, 3000);
      trees.push_back(random_tree(trees.size() + 40, 8, length, group.size()));
      NodeSum& call = calls.emplace_back();
      call.nodes = trees.back().nodes_of(group.rank(), device);
      for (TreeNode& node : call.nodes) node.partial = node.partial.clone();
      call.sum = call.nodes.empty() ? Tensor::empty({length}, DType::float32, device)
                                    : call.nodes.back().partial;
      ++sums;
    }
    sum_nodes(group, 8, calls, algorithm);
    for (std::size_t i = 0; i < trees.size(); ++i) {
      CHECK(equal_bits(calls[i].sum.to(Device::cpu()), trees[i].sum));
    }
  }
  return sums;
}

int check_ring(ProcessGroup& group) {
  const int size = group.size();
  for (const std::int64_t length : kLengths) {
    std::vector<std::vector<float>> values;
    for (int r = 0; r < size; ++r) {
      Generator generator;
      generator.manual_seed(static_cast<std::uint64_t>(r));
      values.push_back(partial_of(generator, length).to_vector<float>());
    }
    std::vector<float> wanted(static_cast<std::size_t>(length));
    for (int slice = 0; slice < size; ++slice) {
      for (auto i = static_cast<std::size_t>(length * slice / size);
           i < static_cast<std::size_t>(length * (slice + 1) / size);
           ++i) {
        wanted[i] = values[static_cast<std::size_t>((slice + 1) % size)][i];
        for (int r = 2; r <= size; ++r) {
          wanted[i] += values[static_cast<std::size_t>((slice + r) % size)][i];
        }
      }
    }
    Tensor tensor = Tensor::from(values[static_cast<std::size_t>(group.rank())], {length});
    dist::ring_all_reduce(group, tensor);
    CHECK(equal_bits(tensor, Tensor::from(wanted, {length})));
  }
  return static_cast<int>(std::size(kLengths));
}

}  // namespace accrue::test
