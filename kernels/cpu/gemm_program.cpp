// Cutting a lane program at borders, leaving out closes that change nothing, fusing steps.
#include "accrue/kernels/cpu/gemm_program.h"

#include <algorithm>
#include <array>

namespace accrue::kernels {
namespace {

constexpr int kNoPhase = 5;

/// The place of an operation in a step.
int phase_of(LaneOp op) {
  switch (op) {
    case LaneOp::zero:
    case LaneOp::load:
      return 0;
    case LaneOp::chain:
      return 1;
    case LaneOp::close:
      return 2;
    case LaneOp::merge:
      return 3;
    case LaneOp::store:
      break;
  }
  return 4;
}

}  // namespace

GemmBlocks GemmProgram::cut(const LaneProgram& program,
                            const std::uint8_t* live,
                            std::int64_t depth) {
  thread_local std::array<GemmProgram, 4> recent;
  thread_local std::size_t oldest = 0;
  if (!live) {
    for (const GemmProgram& known : recent) {
      if (known.is_cut_of(program, depth)) return {known.blocks_, known.num_scratch_};
    }
  }
  return recent[oldest++ % recent.size()].cut_anew(program, live, depth);
}

bool GemmProgram::is_cut_of(const LaneProgram& program, std::int64_t depth) const {
  return depth == depth_ && program.num_buffers == num_buffers_ &&
         program.num_scratch == own_scratch_ &&
         std::ranges::equal(program.instructions, instructions_);
}

GemmBlocks GemmProgram::cut_anew(const LaneProgram& program,
                                 const std::uint8_t* live,
                                 std::int64_t depth) {
  depth_ = 0;  // no cut of anything until this one is complete
  num_scratch_ = program.num_scratch;
  steps_.clear();
  first_steps_.assign(1, 0);
  blocks_.assign(1, {});
  const std::int64_t num_slots = std::int64_t{program.num_buffers} + num_scratch_ + 1;
  slot_closed_.assign(static_cast<std::size_t>(num_slots), false);
  acc_closed_ = false;
  phase_ = kNoPhase;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    if (program.instructions[i].op == LaneOp::chain) {
      cut_chain(program, i, live, depth);
    } else if (!is_idle_close(program, i)) {
      emit(program.instructions[i]);
    }
  }
  first_steps_.push_back(steps_.size());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const std::size_t first = first_steps_[i], end = first_steps_[i + 1];
    hold_sums(first, end, program.num_buffers);
    blocks_[i].steps = std::span(steps_).subspan(first, end - first);
  }
  if (!live) {
    instructions_.assign(program.instructions.begin(), program.instructions.end());
    num_buffers_ = program.num_buffers;
    own_scratch_ = program.num_scratch;
    depth_ = depth;
  }
  return {blocks_, num_scratch_};
}

/// Emits the parts of a chain that lie in one block and are live.
void GemmProgram::cut_chain(const LaneProgram& program,
                            std::size_t at,
                            const std::uint8_t* live,
                            std::int64_t depth) {
  const std::int64_t chain_end = program.instructions[at].end;
  for (std::int64_t k = program.instructions[at].begin; k < chain_end;) {
    const std::int64_t block = k / depth * depth;
    std::int64_t end = std::min(chain_end, block + depth);
    if (live) end = std::find(live + k, live + end, std::uint8_t{0}) - live;
    if (k < end) {
      enter(block, program, at + 1);
      emit(LaneInstruction::chain(k - block, end - block));
      blocks_.back().end = std::max(blocks_.back().end, end);
    }
    k = live ? std::find(live + end, live + chain_end, std::uint8_t{1}) - live : end;
  }
}

/// Makes the block that begins at `block` the current one.
void GemmProgram::enter(std::int64_t block, const LaneProgram& program, std::size_t next) {
  GemmBlock& last = blocks_.back();
  if (last.begin == last.end) last.begin = last.end = block;  // no chain yet
  if (last.begin == block) return;
  const int slot = carrier(program, next);
  emit(LaneInstruction::store(slot));
  first_steps_.push_back(steps_.size());
  blocks_.push_back({block, block, {}});
  phase_ = kNoPhase;
  emit(LaneInstruction::load(slot));
}

/// A slot that may hold acc across a border: a free buffer, or one more scratch slot.
int GemmProgram::carrier(const LaneProgram& program, std::size_t next) {
  if (const int slot = free_buffer(program, next); slot >= 0) return slot;
  num_scratch_ = program.num_scratch + 1;
  return program.num_buffers + program.num_scratch;
}

/// A close turns -0 into +0. It changes nothing where acc cannot be -0, nor before a sum with a
/// slot that cannot: x + -0 equals x + +0 unless x is -0.
bool GemmProgram::is_idle_close(const LaneProgram& program, std::size_t at) const {
  if (program.instructions[at].op != LaneOp::close) return false;
  if (acc_closed_ || at + 1 == program.instructions.size()) return acc_closed_;
  const auto& next = program.instructions[at + 1];
  return next.op == LaneOp::merge && slot_closed_[static_cast<std::size_t>(next.slot)];
}

void GemmProgram::emit(const LaneInstruction& instruction) {
  follow_signs(instruction);
  const int phase = phase_of(instruction.op);
  const bool fits = instruction.op == LaneOp::merge && phase_ == phase
                        ? steps_.back().num_merges < GemmStep::kMaxMerges
                        : phase_ < phase;
  if (!fits) steps_.emplace_back();
  phase_ = phase;
  GemmStep& step = steps_.back();
  switch (instruction.op) {
    case LaneOp::zero:
      step.start = GemmStep::Start::zero;
      break;
    case LaneOp::load:
      step.start = GemmStep::Start::load;
      step.load = instruction.slot;
      break;
    case LaneOp::chain:
      step.begin = static_cast<std::int32_t>(instruction.begin);
      step.end = static_cast<std::int32_t>(instruction.end);
      break;
    case LaneOp::close:
      step.closes = true;
      break;
    case LaneOp::merge:
      step.merges[step.num_merges++] = instruction.slot;
      break;
    case LaneOp::store:
      step.store = instruction.slot;
      break;
  }
}

/// Lets sums that only wait for the next chain's end wait in registers, not in scratch.
void GemmProgram::hold_sums(std::size_t begin, std::size_t end, std::int32_t num_buffers) {
  for (std::size_t i = begin; i + 1 < end; ++i) {
    GemmStep& step = steps_[i];
    GemmStep& next = steps_[i + 1];
    if (step.store < num_buffers || next.start == GemmStep::Start::keep) continue;
    if (next.num_merges == 0 || next.merges[0] != step.store) continue;
    GemmStep rest = next;
    std::shift_left(std::begin(rest.merges), std::end(rest.merges), 1);
    --rest.num_merges;
    if (is_read(step.store, rest, i + 2)) continue;
    rest.merges_held = step.holds = true;
    step.store = -1;
    next = rest;
  }
}

/// Whether `step`, or after it those from `next` on, read a slot before they write it.
bool GemmProgram::is_read(std::int32_t slot, const GemmStep& step, std::size_t next) const {
  const auto reads = [&](const GemmStep& it) {
    return (it.start == GemmStep::Start::load && it.load == slot) ||
           std::ranges::count(std::span(it.merges, std::size_t(it.num_merges)), slot) > 0;
  };
  if (reads(step)) return true;
  for (bool written = step.store == slot; !written && next < steps_.size(); ++next) {
    if (reads(steps_[next])) return true;
    written = steps_[next].store == slot;
  }
  return false;
}

/// Keeps track of what may be -0. A sum is -0 only if both terms are.
void GemmProgram::follow_signs(const LaneInstruction& instruction) {
  const auto slot = slot_closed_.begin() + instruction.slot;
  switch (instruction.op) {
    case LaneOp::zero:
    case LaneOp::close:
      acc_closed_ = true;
      break;
    case LaneOp::load:
      acc_closed_ = *slot;
      break;
    case LaneOp::chain:
      acc_closed_ = false;
      break;
    case LaneOp::merge:
      acc_closed_ = acc_closed_ || *slot;
      break;
    case LaneOp::store:
      *slot = acc_closed_;
      break;
  }
}

}  // namespace accrue::kernels
