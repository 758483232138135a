#include "accrue/autograd/lane_accumulator.h"

#include "accrue/kernels/linear.h"

#include <algorithm>

namespace accrue {

using kernels::LaneInstruction;
using kernels::LaneOp;

void LaneTarget::run_merges() {
  if (instructions.empty()) return;
  visit_floating(buffers.front().dtype(), "window", [&]<class T>(T) {
    const std::int64_t numel = buffers.front().numel();
    const std::vector<T*> slots = pointers<T>();
    kernels::launch_cpu(
        kernels::LinearBiasGrad<T>{{nullptr, 0, numel, numel, 1}, program(), slots});
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

/// Writes the program of one micro-batch. While planning, slot b >= 0 is a buffer that existed
/// before and slot ~v is the v-th value this program stores; place() turns values into scratch
/// slots, or into buffers when they outlive the program.
class LanePlanner {
 public:
  explicit LanePlanner(LaneAccumulator& accumulator) : state_(accumulator) {
    for (auto& node : state_.nodes_) {
      stack_.push_back({node.level, node.index, static_cast<int>(buffers_.size())});
      buffers_.push_back(std::move(node.partial));
    }
    if (state_.open_.defined()) {
      open_ = static_cast<int>(buffers_.size());
      has_open_ = true;
      buffers_.push_back(std::move(state_.open_));
    }
    state_.open_ = Tensor();
  }

  void rows(std::int64_t begin, std::int64_t end, std::int64_t rows) {
    const Lanes& lanes = state_.span_.lanes;
    for (std::int64_t position = begin; position < end;) {
      const int lane = lanes.lane_of(position);
      finish_lanes(lane);
      const std::int64_t lane_end = lanes.begin(lane + 1);
      const std::int64_t stop = std::min(end, lane_end);
      emit(has_open_ ? LaneInstruction::load(open_) : LaneInstruction::zero());
      has_open_ = false;
      emit(LaneInstruction::chain((position - begin) * rows, (stop - begin) * rows));
      open_ = store();
      has_open_ = true;
      position = stop;
      if (stop == lane_end) finish_lanes(lane + 1);
    }
  }

  void finish_lanes(int end) {
    for (; state_.lane_ < end; ++state_.lane_) finish_lane(state_.lane_);
  }

  LaneTarget place(const Tensor& like);

 private:
  struct Entry {
    int level;
    int index;
    int slot;
  };

  void emit(LaneInstruction instruction) { instructions_.push_back(instruction); }

  int store() {
    emit(LaneInstruction::store(~num_values_));
    return ~num_values_++;
  }

  /// Brings a value into the accumulator; a store right before is then not needed.
  void load(int slot) {
    if (instructions_.empty() || instructions_.back().op != LaneOp::store ||
        instructions_.back().slot != slot) {
      emit(LaneInstruction::load(slot));
    } else {
      instructions_.pop_back();
    }
  }

  void finish_lane(int lane) {
    bool has_sum = has_open_;
    int slot = open_;
    if (has_open_) {
      load(slot);
      emit(LaneInstruction::close());
      slot = store();
      has_open_ = false;
    }
    int level = 0;
    int index = lane;
    // An odd index has its sibling on the left, which is finished if this rank owns it whole.
    while (index % 2 == 1 && ((index - 1) << level) >= state_.span_.first_lane) {
      const bool has_sibling =
          !stack_.empty() && stack_.back().level == level && stack_.back().index == index - 1;
      if (has_sibling) {
        if (has_sum) {
          load(slot);
          emit(LaneInstruction::merge(stack_.back().slot));
          slot = store();
        } else {
          slot = stack_.back().slot;
          has_sum = true;
        }
        stack_.pop_back();
      }
      ++level;
      index /= 2;
    }
    if (has_sum) stack_.push_back({level, index, slot});
  }

  LaneAccumulator& state_;
  std::vector<LaneInstruction> instructions_;
  std::vector<Tensor> buffers_;
  std::vector<Entry> stack_;
  int open_ = 0;
  bool has_open_ = false;
  int num_values_ = 0;
};

LaneTarget LanePlanner::place(const Tensor& like) {
  const auto is_kept = [&](int slot) {
    return (has_open_ && open_ == slot) ||
           std::any_of(stack_.begin(), stack_.end(), [&](Entry e) { return e.slot == slot; });
  };
  std::vector<int> home(static_cast<std::size_t>(num_values_));  // buffer b, or ~scratch
  std::vector<int> free_buffers;
  std::vector<int> free_scratch;
  int num_scratch = 0;
  for (LaneInstruction& instruction : instructions_) {
    if (instruction.op == LaneOp::load || instruction.op == LaneOp::merge) {
      if (instruction.slot >= 0) {
        free_buffers.push_back(instruction.slot);
      } else {
        instruction.slot = home[static_cast<std::size_t>(~instruction.slot)];
        free_scratch.push_back(~instruction.slot);
      }
    } else if (instruction.op == LaneOp::store) {
      int& place = home[static_cast<std::size_t>(~instruction.slot)];
      const bool kept = is_kept(instruction.slot);
      std::vector<int>& pool = kept ? free_buffers : free_scratch;
      if (pool.empty() && kept) {
        pool.push_back(static_cast<int>(buffers_.size()));
        buffers_.push_back(Tensor::empty(like.shape(), like.dtype(), like.device()));
      } else if (pool.empty()) {
        pool.push_back(num_scratch++);
      }
      place = kept ? pool.back() : ~pool.back();
      pool.pop_back();
      instruction.slot = place;
    }
  }
  const auto num_buffers = static_cast<int>(buffers_.size());
  for (LaneInstruction& instruction : instructions_) {
    if (instruction.slot < 0) instruction.slot = num_buffers + ~instruction.slot;
  }
  const auto buffer_of = [&](int slot) {
    return buffers_[static_cast<std::size_t>(slot >= 0 ? slot
                                                       : home[static_cast<std::size_t>(~slot)])];
  };
  state_.nodes_.clear();
  for (const Entry& entry : stack_) {
    state_.nodes_.push_back({entry.level, entry.index, buffer_of(entry.slot)});
  }
  if (has_open_) state_.open_ = buffer_of(open_);
  LaneTarget target;
  target.instructions = std::move(instructions_);
  target.buffers = std::move(buffers_);
  target.num_scratch = num_scratch;
  return target;
}

LaneTarget LaneAccumulator::plan(std::int64_t begin,
                                 std::int64_t end,
                                 std::int64_t rows,
                                 const Tensor& like) {
  LanePlanner planner(*this);
  planner.rows(begin, end, rows);
  return planner.place(like);
}

const std::vector<LaneAccumulator::TreeNode>& LaneAccumulator::finish(const Tensor& like) {
  LanePlanner planner(*this);
  planner.finish_lanes(span_.end_lane);
  planner.place(like).run_merges();
  return nodes_;
}

}  // namespace accrue
