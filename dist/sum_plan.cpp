#include "accrue/dist/sum_plan.h"

#include "accrue/core/bits.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace accrue::dist {
namespace {

using kernels::LaneInstruction;

constexpr int kMaxLevel = 15;
constexpr std::size_t kHeadWords = 4;  // lanes, algorithm, hash of the sizes

/// What one rank tells the others: the head, then per sum the number of nodes and the nodes.
Words describe_nodes(int lanes, std::span<const NodeSum> sums, SumAlgorithm algorithm) {
  std::vector<std::int64_t> sizes;
  for (const NodeSum& sum : sums) sizes.push_back(sum.sum.numel());
  const std::uint64_t hash = hash_bits(std::span(sizes));
  Words words{static_cast<std::uint32_t>(lanes),
              static_cast<std::uint32_t>(algorithm),
              static_cast<std::uint32_t>(hash),
              static_cast<std::uint32_t>(hash >> 32)};
  for (const NodeSum& sum : sums) {
    words.push_back(static_cast<std::uint32_t>(sum.nodes.size()));
    for (const TreeNode& node : sum.nodes) {
      words.push_back(static_cast<std::uint32_t>(node.level));
      words.push_back(static_cast<std::uint32_t>(node.index));
    }
  }
  if (words.size() % 2 == 1) words.push_back(0);  // doubles may follow
  return words;
}

/// Sum after sum, node after node.
void append_partials(std::span<const NodeSum> sums, Words& words) {
  for (const NodeSum& sum : sums) {
    for (const TreeNode& node : sum.nodes) {
      visit_floating(sum.sum.dtype(), "sum_nodes", [&]<class T>(T) {
        const Tensor dense = node.partial.contiguous();
        const std::size_t at = words.size(),
                          bytes = sizeof(T) * static_cast<std::size_t>(dense.numel());
        words.resize(at + bytes / sizeof(std::uint32_t));
        if (bytes > 0) std::memcpy(&words[at], dense.data<T>(), bytes);
      });
    }
  }
}

void check_heads(const std::vector<Words>& told, int lanes) {
  for (std::size_t r = 0; r < told.size(); ++r) {
    ACCRUE_CHECK(std::equal(told[r].begin(), told[r].begin() + kHeadWords, told[0].begin()),
                 MismatchError,
                 "sum_nodes",
                 "lanes, algorithm and sizes of the tensors must be equal on all ranks, got others "
                 "on rank ",
                 r,
                 " than on rank 0; build the same model with the same options everywhere");
  }
  ACCRUE_CHECK(lanes >= 1 && lanes <= 1 << kMaxLevel && std::has_single_bit(told[0][0]),
               ValueError,
               "sum_nodes",
               "lanes must be a power of two in [1, 32768], got ",
               lanes,
               "; use 8, the default");
}

std::string name_of(const Leaf& leaf) {
  return text("(level ", leaf.level, ", index ", leaf.index, ") of rank ", leaf.rank);
}

/// Sorts the leaves by lane and refuses what is no part of one tree.
void check_leaves(std::vector<Leaf>& leaves, int lanes) {
  for (const Leaf& leaf : leaves) {
    ACCRUE_CHECK(leaf.level >= 0 && leaf.level <= kMaxLevel && leaf.index >= 0 &&
                     leaf.index < lanes >> leaf.level,
                 ValueError,
                 "sum_nodes",
                 "nodes must lie in the tree over ",
                 lanes,
                 " lanes, got ",
                 name_of(leaf),
                 "; pass level and index of whole subtrees");
  }
  std::sort(leaves.begin(), leaves.end(), [](const Leaf& a, const Leaf& b) {
    return a.first_lane() < b.first_lane();
  });
  for (std::size_t i = 1; i < leaves.size(); ++i) {
    ACCRUE_CHECK(leaves[i].first_lane() >= leaves[i - 1].end_lane(),
                 ValueError,
                 "sum_nodes",
                 "each lane must lie in one node, got lane ",
                 leaves[i].first_lane(),
                 " in ",
                 name_of(leaves[i - 1]),
                 " and ",
                 name_of(leaves[i]),
                 "; give each lane to one rank");
  }
}

/// Writes the merges of a tree: a sum that lacks its sibling moves up unchanged.
class MergeWriter {
 public:
  explicit MergeWriter(SumPlan& plan) : plan_(plan) {}

  void write(int lanes) {
    const int num_leaves = static_cast<int>(plan_.leaves.size());
    int covered = 0;
    for (const Leaf& leaf : plan_.leaves) covered += 1 << leaf.level;
    if (num_leaves == 0) {
      emit(LaneInstruction::zero());
    } else {
      write_node(lanes, 0, 0, num_leaves, 0);
      // An absent lane is +0. That changes a sum only if all else is -0, and then its sign.
      if (covered < lanes) emit(LaneInstruction::close());
    }
    emit(LaneInstruction::store(num_leaves));
  }

 private:
  /// Leaves [begin, end) lie in the node of `width` lanes from `first_lane`; their sum ends in acc.
  void write_node(int width, int first_lane, int begin, int end, int scratch) {
    if (end - begin == 1) return emit(LaneInstruction::load(begin));
    const int half = width / 2, middle_lane = first_lane + half;
    int middle = begin;
    while (middle < end && leaf(middle).first_lane() < middle_lane) ++middle;
    if (middle == begin) return write_node(half, middle_lane, begin, end, scratch);
    if (middle == end) return write_node(half, first_lane, begin, end, scratch);
    int left = begin;
    if (middle - begin > 1) {
      write_node(half, first_lane, begin, middle, scratch);
      left = static_cast<int>(plan_.leaves.size()) + 1 + scratch;
      emit(LaneInstruction::store(left));
      plan_.num_scratch = std::max(plan_.num_scratch, ++scratch);
    }
    write_node(half, middle_lane, middle, end, scratch);
    emit(LaneInstruction::merge(left));
  }

  const Leaf& leaf(int i) const { return plan_.leaves[static_cast<std::size_t>(i)]; }
  void emit(LaneInstruction instruction) { plan_.instructions.push_back(instruction); }

  SumPlan& plan_;
};

std::vector<Words> tell_all(ProcessGroup& group,
                            std::span<const NodeSum> sums,
                            const Words& words) {
  std::int64_t numel = 0;
  for (const NodeSum& sum : sums) numel += sum.sum.numel();
  const DType dtype = sums.empty() ? DType::float32 : sums.front().sum.dtype();
  const Call call{.kind = CallKind::sum_nodes,
                  .dtype = dtype,
                  .detail = static_cast<std::uint16_t>(sums.size()),
                  .count = static_cast<std::uint64_t>(numel)};
  const std::string_view bytes(reinterpret_cast<const char*>(words.data()),
                               words.size() * sizeof(std::uint32_t));
  std::vector<Words> told;
  for (const std::string& from : group.begin_all_gather_bytes(call, bytes)) {
    Words& to = told.emplace_back(from.size() / sizeof(std::uint32_t));
    std::memcpy(to.data(), from.data(), from.size());
  }
  return told;
}

}  // namespace

bool SumPlan::is_one_each() const {
  if (leaves.size() != counts.size() || !std::has_single_bit(counts.size())) return false;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].rank != static_cast<int>(i) || leaves[i].index != static_cast<int>(i)) {
      return false;
    }
  }
  return true;
}

Agreement agree(ProcessGroup& group,
                int lanes,
                std::span<const NodeSum> sums,
                SumAlgorithm algorithm,
                bool with_partials) {
  Words mine = describe_nodes(lanes, sums, algorithm);
  if (with_partials) append_partials(sums, mine);
  Agreement result{{}, tell_all(group, sums, mine), {}};
  const std::vector<Words>& told = result.told;
  check_heads(told, lanes);
  std::vector<std::size_t>& at = result.ends;
  at.assign(told.size(), kHeadWords);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    SumPlan plan;
    for (std::size_t r = 0; r < told.size(); ++r) {
      const int count = static_cast<int>(told[r][at[r]++]);
      plan.counts.push_back(count);
      for (int order = 0; order < count; ++order, at[r] += 2) {
        plan.leaves.push_back({static_cast<int>(told[r][at[r]]),
                               static_cast<int>(told[r][at[r] + 1]),
                               static_cast<int>(r),
                               order});
      }
    }
    check_leaves(plan.leaves, lanes);
    if (!result.plans.empty() && result.plans.back()->leaves == plan.leaves) {
      result.plans.push_back(result.plans.back());
    } else {
      MergeWriter(plan).write(lanes);
      result.plans.push_back(std::make_shared<SumPlan>(std::move(plan)));
    }
  }
  for (std::size_t& end : at) end += end % 2;
  return result;
}

}  // namespace accrue::dist
