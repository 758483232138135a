// sum_nodes: sums over all lanes of all ranks, whose bits do not depend on the ranks (contract 18).
#pragma once

#include "accrue/core/tree_node.h"
#include "accrue/dist/process_group.h"

#include <span>
#include <vector>

namespace accrue::dist {

/// How sum_nodes() moves data. All give the same bits.
enum class SumAlgorithm : std::uint8_t {
  automatic,
  all_to_all,  ///< slices to their owners, ordered sums, slices to all: any nodes on any rank
  doubling,    ///< log2(W) halving exchanges and back: every rank holds one node of equal level
  gather,      ///< all partials to all ranks, which sum them alone: the fewest steps
};

/// One tensor to sum over the lanes of a window.
struct NodeSum {
  std::vector<TreeNode> nodes;  ///< this rank's partial sums, each of sum's shape; may be empty
  Tensor sum;                   ///< float32, contiguous, where the result goes on every rank
};

/// Sums several tensors at once: each `sum` becomes the root of the aligned binary tree over
/// `lanes` lanes, left + right, where a lane that lies in no rank's nodes is +0.
///
/// Shapes:  the sums have the same numbers of elements in the same order on all ranks; a partial
///          may be its own sum.
/// Order:   that of the tree, per element, whatever W, the algorithm and the split of lanes.
/// Errors:  those of ProcessGroup; ValueError on all ranks where lanes is no power of two, a node
///          lies outside the tree or a lane in two nodes, or `doubling` does not apply; ShapeError,
///          DTypeError. Checked before any sum is written.
/// Source:  docs/numerics.md, rules 6 and 18.
void sum_nodes(ProcessGroup& group,
               int lanes,
               std::span<NodeSum> sums,
               SumAlgorithm algorithm = SumAlgorithm::automatic);
/// One tensor.
void sum_nodes(ProcessGroup& group,
               int lanes,
               const std::vector<TreeNode>& nodes,
               Tensor& sum,
               SumAlgorithm algorithm = SumAlgorithm::automatic);

}  // namespace accrue::dist
