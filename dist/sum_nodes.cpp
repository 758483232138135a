#include "accrue/dist/sum_nodes.h"

#include "accrue/core/same_device.h"
#include "accrue/dist/summation.h"

#include <algorithm>

namespace accrue::dist {
namespace {

constexpr std::int64_t kFewBytes = 4096;  // up to here partials travel with the list of nodes

void check_sums(std::span<const NodeSum> sums) {
  for (const NodeSum& sum : sums) {
    check_device("sum_nodes", sums.front().sum.device(), sum.sum);
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
      check_device("sum_nodes", sum.sum.device(), node.partial);
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
                    const std::vector<std::shared_ptr<const SumPlan>>& plans) {
  if (group.size() == 1) return SumAlgorithm::gather;
  if (!group.shares_memory() && group.size() > 2 && is_one_each(plans)) {
    return SumAlgorithm::doubling;
  }
  return SumAlgorithm::all_to_all;
}

template <class T>
void run(Carrier& carrier,
         ProcessGroup& group,
         std::span<NodeSum> sums,
         const Agreement& agreement,
         SumAlgorithm algorithm,
         bool has_partials) {
  Summation<T> summation(carrier, sums, agreement.plans);
  if (has_partials) return summation.add_all(agreement);
  if (algorithm == SumAlgorithm::automatic) algorithm = choose(group, agreement.plans);
  if (algorithm == SumAlgorithm::gather) {
    summation.gather();
  } else if (algorithm == SumAlgorithm::doubling) {
    summation.double_distances();
  } else {
    summation.all_to_all();
  }
}

/// Sums device memory by way of the host.
void sum_staged(ProcessGroup& group, int lanes, std::span<NodeSum> sums, SumAlgorithm algorithm) {
  std::vector<NodeSum> staged;
  for (const NodeSum& sum : sums) {
    NodeSum& on_host = staged.emplace_back();
    for (const TreeNode& node : sum.nodes) {
      on_host.nodes.push_back({node.level, node.index, node.partial.to(Device::cpu())});
    }
    on_host.sum = Tensor::empty(sum.sum.shape(), sum.sum.dtype());
  }
  sum_nodes(group, lanes, staged, algorithm);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i].sum.copy_from(staged[i].sum);
}

}  // namespace

void sum_nodes(ProcessGroup& group, int lanes, std::span<NodeSum> sums, SumAlgorithm algorithm) {
  check_sums(sums);
  const Device device = sums.empty() ? Device::cpu() : sums.front().sum.device();
  DeviceLink* const link = device.is_cpu() ? nullptr : group.link(device);
  if (!device.is_cpu() && link == nullptr && group.size() > 1) {
    return sum_staged(group, lanes, sums, algorithm);
  }
  std::int64_t bytes = 0;
  for (const NodeSum& sum : sums) bytes += sum.sum.numel() * size_of(sum.sum.dtype());
  const bool is_small = algorithm == SumAlgorithm::automatic && device.is_cpu() &&
                        bytes <= kFewBytes && group.size() > 1;
  const Agreement agreement = agree(group, lanes, sums, algorithm, is_small);
  ACCRUE_CHECK(algorithm != SumAlgorithm::doubling || is_one_each(agreement.plans),
               ValueError,
               "sum_nodes",
               "doubling needs a power of two of ranks that each hold one node of equal size, got "
               "other nodes; use automatic or all_to_all");
  if (sums.empty()) return;
  HostCarrier host(group);
  DeviceCarrier on_device(group, link, device);
  Carrier& carrier = device.is_cpu() ? static_cast<Carrier&>(host) : on_device;
  visit_floating(sums.front().sum.dtype(), "sum_nodes", [&]<class T>(T) {
    run<T>(carrier, group, sums, agreement, algorithm, is_small);
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
