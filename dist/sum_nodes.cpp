#include "accrue/dist/sum_nodes.h"

#include "accrue/dist/summation.h"

#include <algorithm>

namespace accrue::dist {
namespace {

constexpr std::int64_t kFewBytes = 4096;  // up to here one step beats two

void check_sums(std::span<const NodeSum> sums) {
  for (const NodeSum& sum : sums) {
    ACCRUE_CHECK(is_floating(sum.sum.dtype()) && sum.sum.dtype() == sums.front().sum.dtype(),
                 DTypeError,
                 "sum_nodes",
                 "sums must be float32 or float64, all the same, got ",
                 sum.sum.dtype(),
                 "; convert with to()");
    ACCRUE_CHECK(sum.sum.is_contiguous(),
                 ShapeError,
                 "sum_nodes",
                 "sums must be contiguous, got strides ",
                 sum.sum.strides(),
                 "; pass a dense tensor");
    for (const TreeNode& node : sum.nodes) {
      ACCRUE_CHECK(node.partial.dtype() == sum.sum.dtype(),
                   DTypeError,
                   "sum_nodes",
                   "a partial must have its sum's dtype ",
                   sum.sum.dtype(),
                   ", got ",
                   node.partial.dtype(),
                   "; convert with to()");
      ACCRUE_CHECK(node.partial.shape() == sum.sum.shape(),
                   ShapeError,
                   "sum_nodes",
                   "a partial must have its sum's shape ",
                   sum.sum.shape(),
                   ", got ",
                   node.partial.shape(),
                   "; reshape it");
    }
  }
}

bool is_one_each(const std::vector<std::shared_ptr<const SumPlan>>& plans) {
  return std::all_of(
      plans.begin(), plans.end(), [](const auto& plan) { return plan->is_one_each(); });
}

/// Depends only on what all ranks know.
SumAlgorithm choose(const ProcessGroup& group,
                    const std::vector<std::shared_ptr<const SumPlan>>& plans,
                    std::int64_t bytes) {
  std::int64_t nodes = 1;
  for (const auto& plan : plans) nodes = std::max<std::int64_t>(nodes, std::ssize(plan->leaves));
  if (group.size() == 1 || bytes * nodes <= kFewBytes) return SumAlgorithm::gather;
  if (!group.shares_memory() && group.size() > 2 && is_one_each(plans)) {
    return SumAlgorithm::doubling;
  }
  return SumAlgorithm::all_to_all;
}

}  // namespace

void sum_nodes(ProcessGroup& group, int lanes, std::span<NodeSum> sums, SumAlgorithm algorithm) {
  check_sums(sums);
  const auto plans = agree_on_plans(group, lanes, sums, algorithm);
  ACCRUE_CHECK(algorithm != SumAlgorithm::doubling || is_one_each(plans),
               ValueError,
               "sum_nodes",
               "doubling needs a power of two of ranks that each hold one node of equal size, got "
               "other nodes; use automatic or all_to_all");
  if (sums.empty()) return;
  visit_floating(sums.front().sum.dtype(), "sum_nodes", [&]<class T>(T) {
    Summation<T> summation(group, sums, plans);
    if (algorithm == SumAlgorithm::automatic) algorithm = choose(group, plans, summation.bytes());
    if (algorithm == SumAlgorithm::gather) {
      summation.gather();
    } else if (algorithm == SumAlgorithm::doubling) {
      summation.double_distances();
    } else {
      summation.all_to_all();
    }
  });
}

void sum_nodes(ProcessGroup& group,
               int lanes,
               const std::vector<TreeNode>& nodes,
               Tensor& sum,
               SumAlgorithm algorithm) {
  NodeSum one{nodes, sum};
  sum_nodes(group, lanes, std::span(&one, 1), algorithm);
}

}  // namespace accrue::dist
