// SumPlan: which rank holds which nodes of one tensor's sum, and the order in which they merge.
#pragma once

#include "accrue/dist/sum_nodes.h"
#include "accrue/kernels/lane_program.h"

#include <memory>

namespace accrue::dist {

/// A node and who holds it.
struct Leaf {
  int level = 0;
  int index = 0;
  int rank = 0;
  int order = 0;  ///< place among the rank's nodes

  int first_lane() const { return index << level; }
  int end_lane() const { return (index + 1) << level; }
  bool operator==(const Leaf&) const = default;
};

/// The program that merges slots [0, leaves.size()), one per leaf, into the next slot.
struct SumPlan {
  std::vector<Leaf> leaves;  ///< in the order of lanes
  std::vector<int> counts;   ///< nodes per rank
  std::vector<kernels::LaneInstruction> instructions;
  int num_scratch = 0;

  kernels::LaneProgram program() const {
    return {instructions, static_cast<std::int32_t>(leaves.size()) + 1, num_scratch};
  }
  /// Every rank holds one node, all of one level, in rank order.
  bool is_one_each() const;
};

using Words = std::vector<std::uint32_t>;

/// What ranks know after the first step of a sum.
struct Agreement {
  std::vector<std::shared_ptr<const SumPlan>> plans;  ///< one per sum; equal neighbours share one
  std::vector<Words> told;                            ///< what each rank said
  std::vector<std::size_t> ends;                      ///< where its partials begin in that

  std::span<const std::byte> partials_of(std::size_t rank) const {
    return std::as_bytes(std::span(told[rank]).subspan(ends[rank]));
  }
};

/// Begins the collective: ranks tell each other their nodes, and the partials too if asked to.
///
/// Errors:  as sum_nodes(), with the same text on all ranks.
Agreement agree(ProcessGroup& group,
                int lanes,
                std::span<const NodeSum> sums,
                SumAlgorithm algorithm,
                bool with_partials);

}  // namespace accrue::dist
