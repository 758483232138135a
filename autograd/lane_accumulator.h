// LaneAccumulator: the parameter gradient of one use over one window, lane by lane (contract 5, 6).
#pragma once

#include "accrue/core/lanes.h"
#include "accrue/core/tensor.h"
#include "accrue/core/tree_node.h"
#include "accrue/kernels/lane_program.h"

#include <memory>
#include <vector>

namespace accrue {

/// Lanes [begin, end).
struct LaneRun {
  int begin = 0;
  int end = 0;
};

/// The positions of one window that this rank owns.
struct WindowSpan {
  Lanes lanes;
  std::int64_t size = 0;  ///< samples in this window, at most lanes.nominal_size
  int first_lane = 0;     ///< this rank's lanes lie in [first_lane, end_lane)
  int end_lane = 1;
  /// Those of them that are this rank's, ascending, apart from each other; null: all.
  std::shared_ptr<const std::vector<LaneRun>> runs = nullptr;

  /// Whether all of the lanes [begin, end) are this rank's.
  bool owns(int begin, int end) const;
  bool operator==(const WindowSpan&) const = default;
};

/// Rows that a kernel chains into a parameter gradient: the program and the buffers it names.
struct LaneTarget {
  std::vector<kernels::LaneInstruction> instructions;
  std::vector<Tensor> buffers;
  int num_scratch = 0;

  kernels::LaneProgram program() const {
    return {instructions, static_cast<std::int32_t>(buffers.size()), num_scratch};
  }
  /// First elements of the buffers, in slot order.
  template <class T>
  std::vector<T*> pointers() {
    std::vector<T*> result;
    for (Tensor& buffer : buffers) result.push_back(buffer.mutable_data<T>());
    return result;
  }

  /// Runs a program that merges buffers and chains no rows.
  void run_merges();
  /// One lane that never closes: continues `target` if `load`, else starts at +0 (plain autograd).
  static LaneTarget chain(Tensor target, bool load, std::int64_t rows);
};

/// Partial sums of finished lanes as nodes of the aligned binary tree, and the open lane's sum.
///
/// Siblings merge as soon as both are finished, so at most log2(L) + 1 buffers live between
/// micro-batches. A lane without rows is +0, which changes no sum: its sibling moves up unchanged.
class LaneAccumulator {
 public:
  explicit LaneAccumulator(const WindowSpan& span) : span_(span), lane_(span.first_lane) {}

  /// The program for a micro-batch of window positions [begin, end) with `rows` rows per sample,
  /// and the buffers it continues or fills. Micro-batches come in ascending order.
  LaneTarget plan(std::int64_t begin, std::int64_t end, std::int64_t rows, const Tensor& like);
  /// Finishes every lane of the rank: one node per complete subtree is left, a single one (the
  /// root) where the rank owns all lanes, none where it saw no rows.
  const std::vector<TreeNode>& finish(const Tensor& like);

 private:
  struct Node {
    int level = 0;
    int index = 0;
    int slot = 0;

    bool operator==(const Node&) const = default;
  };
  struct State;
  struct Plan;
  class Planner;

  static const Plan& plan_for(const State& state);
  LaneTarget apply(State state, const Tensor& like);

  WindowSpan span_;
  int lane_;     ///< first lane that is not finished
  Tensor open_;  ///< sum of lane_ so far; undefined when it has no rows yet
  std::vector<TreeNode> nodes_;
};

}  // namespace accrue
