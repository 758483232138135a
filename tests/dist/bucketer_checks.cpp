#include "accrue/tests/dist/bucketer_checks.h"

#include "accrue/core/generator.h"
#include "accrue/tests/support/doctest.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>

namespace accrue::test {

using dist::Bucketer;
using dist::BucketParameter;
using dist::ProcessGroup;

namespace {

constexpr int kLanes = 8;
constexpr double kRankWeight = 3;

/// Three tensors of 100 floats each, one of 30,000 and a scalar.
std::vector<BucketParameter> bucket_parameters() {
  return {{"first", {10, 10}},
          {"tied", {100}},
          {"of_rank_0", {100}},
          {"odd_windows", {100}},
          {"large", {300, 100}},
          {"scalar", {}}};
}

/// How many uses parameter `p` has on `rank`; no rank uses number 3 in even windows.
std::size_t num_uses(std::size_t p, int window, int rank) {
  if (p == 3 && window % 2 == 0) return 0;
  if (p == 2) return rank == 0 ? 1 : 0;
  return p == 1 ? 3 : 1 + (static_cast<std::size_t>(window + rank) + p) % 2;
}

Tensor lane_sum(std::size_t parameter, std::size_t use, int window, int lane) {
  Tensor sum = Tensor::empty(bucket_parameters()[parameter].shape);
  auto bits = static_cast<std::uint32_t>(parameter * 1000 + use * 100) +
              static_cast<std::uint32_t>(window * 10 + lane);
  for (float& value : std::span(sum.mutable_data<float>(), static_cast<std::size_t>(sum.numel()))) {
    bits = bits * 1664525U + 1013904223U;
    value = static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-28f;
  }
  return sum;
}

int first_lane(int rank, int size) { return rank * kLanes / size; }

/// The sum over lanes [begin, end) of those ranks that have the use.
std::vector<float> tree_sum(
    std::size_t parameter, std::size_t use, int window, int size, int begin, int end) {
  const auto numel = static_cast<std::size_t>(lane_sum(parameter, 0, 0, 0).numel());
  if (end - begin == 1) {
    int rank = size - 1;
    while (first_lane(rank, size) > begin) --rank;
    if (use >= num_uses(parameter, window, rank)) return std::vector<float>(numel);
    return lane_sum(parameter, use, window, begin).to_vector<float>();
  }
  const int middle = (begin + end) / 2;
  std::vector<float> left = tree_sum(parameter, use, window, size, begin, middle);
  const std::vector<float> right = tree_sum(parameter, use, window, size, middle, end);
  for (std::size_t i = 0; i < numel; ++i) left[i] += right[i];
  return left;
}

Bucketer::Uses uses_of(std::size_t parameter,
                       int window,
                       const ProcessGroup& group,
                       Device device) {
  const int rank = group.rank(), size = group.size();
  Bucketer::Uses uses;
  for (std::size_t use = 0; use < num_uses(parameter, window, rank); ++use) {
    std::vector<TreeNode>& nodes = uses.emplace_back();
    for (int lane = first_lane(rank, size); lane < first_lane(rank + 1, size); ++lane) {
      nodes.push_back({0, lane, lane_sum(parameter, use, window, lane).to(device)});
    }
  }
  return uses;
}

/// From plain loops; undefined where no rank has a use.
Tensor expected_gradient(std::size_t parameter, int window, int size, double divisor) {
  std::size_t most = 0;
  for (int rank = 0; rank < size; ++rank) {
    most = std::max(most, num_uses(parameter, window, rank));
  }
  if (most == 0) return {};
  std::vector<float> sum = tree_sum(parameter, 0, window, size, 0, kLanes);
  for (std::size_t use = 1; use < most; ++use) {
    const std::vector<float> other = tree_sum(parameter, use, window, size, 0, kLanes);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
  }
  for (float& value : sum) value /= static_cast<float>(divisor);
  return Tensor::from(sum, bucket_parameters()[parameter].shape);
}

/// Parameters in an order that differs between ranks and windows.
std::vector<std::size_t> shuffled(int window, int rank) {
  std::vector<std::size_t> order(bucket_parameters().size());
  std::iota(order.begin(), order.end(), 0);
  Generator generator;
  generator.manual_seed(static_cast<std::uint64_t>(window * 100 + rank));
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<std::size_t>(generator.random_()) % i]);
  }
  return order;
}

void check_window(Bucketer& bucketer,
                  const ProcessGroup& group,
                  int window,
                  const std::vector<Tensor>& wanted,
                  Device device) {
  bucketer.begin(window, std::to_string(kRankWeight));
  for (const std::size_t p : shuffled(window, group.rank())) {
    Bucketer::Uses uses = uses_of(p, window, group, device);
    if (!uses.empty()) bucketer.ready(p, std::move(uses));
  }
  Tensor more = Tensor::empty({1});
  std::vector<TreeNode> nodes;
  if (group.rank() == 0) nodes.push_back({0, 0, Tensor::ones({1})});
  dist::NodeSum further{nodes, more};
  const double divisor = bucketer.finish(std::span(&further, 1));
  CHECK(divisor == kRankWeight * group.size());
  CHECK(more.item<float>() == 1.0f);
  for (std::size_t p = 0; p < bucket_parameters().size(); ++p) {
    const Tensor gradient = bucketer.gradient(p);
    CHECK(gradient.defined() == wanted[p].defined());
    if (gradient.defined()) CHECK(equal_bits(gradient.to(Device::cpu()), wanted[p]));
  }
}

}  // namespace

double sum_of_weights(std::span<const std::string> weights) {
  double sum = 0;
  for (const std::string& weight : weights) sum += std::stod(weight);
  return sum;
}

int check_bucketer(ProcessGroup& group, Device device) {
  constexpr int kWindows = 3;
  std::vector<BucketParameter> parameters = bucket_parameters();
  for (BucketParameter& parameter : parameters) parameter.device = device;
  std::vector<std::vector<Tensor>> wanted(kWindows);
  for (int window = 0; window < kWindows; ++window) {
    for (std::size_t p = 0; p < bucket_parameters().size(); ++p) {
      wanted[static_cast<std::size_t>(window)].push_back(
          expected_gradient(p, window, group.size(), kRankWeight * group.size()));
    }
  }
  int windows = 0;
  const bool is_quick = !device.is_cpu() && std::getenv("ACCRUE_QUICK") != nullptr;
  for (const std::int64_t cap : {1 << 10, 64 << 10, 25 << 20}) {
    for (const bool overlap : {true, false}) {
      if (is_quick && (cap == 64 << 10 || !overlap)) continue;  // takes minutes in the simulator
      Bucketer bucketer(group,
                        parameters,
                        &sum_of_weights,
                        {.lanes = kLanes,
                         .first_bucket_bytes = cap / 2,
                         .bucket_cap_bytes = cap,
                         .overlap = overlap});
      for (int window = 0; window < kWindows; ++window, ++windows) {
        check_window(bucketer, group, window, wanted[static_cast<std::size_t>(window)], device);
      }
    }
  }
  return windows;
}

}  // namespace accrue::test
