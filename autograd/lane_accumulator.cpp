#include "accrue/autograd/lane_accumulator.h"

#include "accrue/kernels/lane_merges.h"
#include "accrue/kernels/launch.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace accrue {
namespace {

constexpr int kNone = std::numeric_limits<int>::min();

}  // namespace

using kernels::LaneInstruction;
using kernels::LaneOp;

bool WindowSpan::owns(int begin, int end) const {
  if (begin < first_lane || end > end_lane) return false;
  if (!runs) return true;
  const auto behind =
      std::upper_bound(runs->begin(), runs->end(), begin, [](int lane, const LaneRun& run) {
        return lane < run.begin;
      });
  return behind != runs->begin() && end <= std::prev(behind)->end;
}

void LaneTarget::run_merges() {
  if (instructions.empty()) return;
  visit_floating(buffers.front().dtype(), "window", [&]<class T>(T) {
    const std::vector<T*> slots = pointers<T>();
    kernels::launch(buffers.front().device(),
                    kernels::LaneMerges<T>{program(), slots, buffers.front().numel()});
  });
}

LaneTarget LaneTarget::chain(Tensor target, bool load, std::int64_t rows) {
  LaneTarget result;
  result.instructions = {load ? LaneInstruction::load(0) : LaneInstruction::zero(),
                         LaneInstruction::chain(0, rows),
                         LaneInstruction::store(0)};
  result.buffers = {std::move(target)};
  return result;
}

/// What a plan is a function of: the rows of a micro-batch and where the accumulator stands.
struct LaneAccumulator::State {
  WindowSpan span = {};
  std::int64_t begin = 0, end = 0, rows = 0;  ///< of the micro-batch
  int until = 0;                              ///< lanes to finish even if no rows come
  int lane = 0;                               ///< first lane that is not finished
  bool has_open = false;
  std::vector<Node> nodes = {};  ///< slot i is buffer i; the open lane's buffer follows

  bool operator==(const State&) const = default;
};

/// A program and where it leaves the sums.
struct LaneAccumulator::Plan {
  State state;
  std::vector<LaneInstruction> instructions = {};
  int num_buffers = 0, num_scratch = 0;
  int lane = 0;
  std::vector<Node> nodes = {};
  int open = kNone;
};

/// Writes a plan. While planning, slot b >= 0 is a buffer that existed before and slot ~v is the
/// v-th value this program stores; place() turns values into scratch slots, or into buffers when
/// they outlive the program.
class LaneAccumulator::Planner {
 public:
  static Plan plan(const State& state) {
    Planner planner(state);
    planner.add_rows(state);
    planner.finish_lanes(state.until);
    planner.place();
    return std::move(planner.plan_);
  }

 private:
  explicit Planner(const State& state) : plan_{.state = state} {
    plan_.lane = state.lane;
    plan_.nodes = state.nodes;
    plan_.num_buffers = static_cast<int>(state.nodes.size());
    if (state.has_open) plan_.open = plan_.num_buffers++;
  }

  void add_rows(const State& state) {
    const auto& [span, begin, end, rows, until, lane, has_open, nodes] = state;
    for (std::int64_t position = begin; position < end;) {
      const int at = span.lanes.lane_of(position);
      finish_lanes(at);
      const std::int64_t lane_end = span.lanes.begin(at + 1);
      const std::int64_t stop = std::min(end, lane_end);
      emit(plan_.open == kNone ? LaneInstruction::zero() : LaneInstruction::load(plan_.open));
      emit(LaneInstruction::chain((position - begin) * rows, (stop - begin) * rows));
      plan_.open = store();
      position = stop;
      if (stop == lane_end) finish_lanes(at + 1);
    }
  }

  void finish_lanes(int end) {
    for (; plan_.lane < end; ++plan_.lane) {
      if (plan_.state.span.owns(plan_.lane, plan_.lane + 1)) finish_lane(plan_.lane);
    }
  }

  void emit(LaneInstruction instruction) { plan_.instructions.push_back(instruction); }

  int store() {
    emit(LaneInstruction::store(~num_values_));
    return ~num_values_++;
  }

  /// Brings a value into the accumulator; a store right before is then not needed.
  void load(int slot) {
    if (plan_.instructions.empty() || plan_.instructions.back().op != LaneOp::store ||
        plan_.instructions.back().slot != slot) {
      emit(LaneInstruction::load(slot));
    } else {
      plan_.instructions.pop_back();
    }
  }

  void finish_lane(int lane) {
    int slot = std::exchange(plan_.open, kNone);
    if (slot != kNone) {
      load(slot);
      emit(LaneInstruction::close());
      slot = store();
    }
    int level = 0;
    int index = lane;
    std::vector<Node>& nodes = plan_.nodes;
    // An odd index has its sibling on the left, which is finished if this rank owns it whole.
    while (index % 2 == 1 && plan_.state.span.owns((index - 1) << level, index << level)) {
      if (!nodes.empty() && nodes.back().level == level && nodes.back().index == index - 1) {
        const int sibling = nodes.back().slot;
        nodes.pop_back();
        if (slot == kNone) {
          slot = sibling;
        } else {
          load(slot);
          emit(LaneInstruction::merge(sibling));
          slot = store();
        }
      }
      ++level;
      index /= 2;
    }
    if (slot != kNone) nodes.push_back({level, index, slot});
  }

  void place();

  Plan plan_;
  int num_values_ = 0;
};

void LaneAccumulator::Planner::place() {
  const auto value = [](int slot) {
    const int index = ~slot;
    return static_cast<std::size_t>(index);
  };
  std::vector<char> is_kept(static_cast<std::size_t>(num_values_));
  for (const Node& node : plan_.nodes) {
    if (node.slot < 0) is_kept[value(node.slot)] = true;
  }
  if (plan_.open < 0 && plan_.open != kNone) is_kept[value(plan_.open)] = true;

  std::vector<int> home(static_cast<std::size_t>(num_values_));  // buffer b, or ~scratch
  std::vector<int> free_buffers, free_scratch;
  for (LaneInstruction& instruction : plan_.instructions) {
    int& slot = instruction.slot;
    if (instruction.op == LaneOp::load || instruction.op == LaneOp::merge) {
      if (slot < 0) slot = home[value(slot)];
      if (slot < 0) {
        free_scratch.push_back(~slot);
      } else {
        free_buffers.push_back(slot);
      }
    } else if (instruction.op == LaneOp::store) {
      const bool kept = is_kept[value(slot)] != 0;
      std::vector<int>& pool = kept ? free_buffers : free_scratch;
      if (pool.empty()) pool.push_back(kept ? plan_.num_buffers++ : plan_.num_scratch++);
      home[value(slot)] = kept ? pool.back() : ~pool.back();
      slot = home[value(slot)];
      pool.pop_back();
    }
  }
  for (LaneInstruction& instruction : plan_.instructions) {
    if (instruction.slot < 0) instruction.slot = plan_.num_buffers + ~instruction.slot;
  }
  for (Node& node : plan_.nodes) {
    if (node.slot < 0) node.slot = home[value(node.slot)];
  }
  if (plan_.open < 0 && plan_.open != kNone) plan_.open = home[value(plan_.open)];
}

/// The plan for `state`. The last few are kept: the parameters of a micro-batch share one, and
/// windows of one micro-batch repeat it.
const LaneAccumulator::Plan& LaneAccumulator::plan_for(const State& state) {
  thread_local std::array<Plan, 4> recent;
  thread_local std::size_t oldest = 0;
  for (const Plan& plan : recent) {
    if (plan.state == state) return plan;
  }
  Plan& plan = recent[oldest++ % recent.size()];
  plan = Planner::plan(state);
  return plan;
}

LaneTarget LaneAccumulator::apply(State state, const Tensor& like) {
  state.span = span_;
  state.lane = lane_;
  state.has_open = open_.defined();
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    state.nodes.push_back({nodes_[i].level, nodes_[i].index, static_cast<int>(i)});
  }
  const Plan& plan = plan_for(state);

  LaneTarget target;
  target.instructions = plan.instructions;
  target.num_scratch = plan.num_scratch;
  target.buffers.reserve(static_cast<std::size_t>(plan.num_buffers));
  for (const TreeNode& node : nodes_) target.buffers.push_back(node.partial);
  if (open_.defined()) target.buffers.push_back(open_);
  while (static_cast<int>(target.buffers.size()) < plan.num_buffers) {
    target.buffers.push_back(Tensor::empty(like.shape(), like.dtype(), like.device()));
  }
  nodes_.clear();
  for (const auto& [level, index, slot] : plan.nodes) {
    nodes_.push_back({level, index, target.buffers[static_cast<std::size_t>(slot)]});
  }
  open_ = plan.open == kNone ? Tensor() : target.buffers[static_cast<std::size_t>(plan.open)];
  lane_ = plan.lane;
  return target;
}

LaneTarget LaneAccumulator::plan(std::int64_t begin,
                                 std::int64_t end,
                                 std::int64_t rows,
                                 const Tensor& like) {
  return apply({.begin = begin, .end = end, .rows = rows}, like);
}

const std::vector<TreeNode>& LaneAccumulator::finish(const Tensor& like) {
  if (lane_ < span_.end_lane) apply({.until = span_.end_lane}, like).run_merges();
  return nodes_;
}

}  // namespace accrue
