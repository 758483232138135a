#include "accrue/kernels/program_segments.h"

#include <algorithm>

namespace accrue::kernels {

ProgramSegments::ProgramSegments(const LaneProgram& program,
                                 std::int64_t period,
                                 std::int64_t block)
    : num_buffers_(program.num_buffers), num_scratch_(program.num_scratch) {
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const LaneInstruction& it = program.instructions[i];
    if (it.op != LaneOp::chain) {
      instructions_.push_back(it);
      continue;
    }
    for (std::int64_t row = it.begin; row < it.end;) {
      const std::int64_t start = row / period * period;
      const std::int64_t begin = start + (row - start) / block * block;
      const std::int64_t end = std::min(begin + block, start + period);
      const std::int64_t stop = std::min(it.end, end);
      enter(program, i + 1, begin, end);
      instructions_.push_back(LaneInstruction::chain(row - begin, stop - begin));
      row = stop;
    }
  }
  segments_.back().last = instructions_.size();
}

/// Makes the block [begin, end) the current one. acc crosses the border in a buffer, unless the
/// chain behind the border, which instruction `next` follows, starts it.
void ProgramSegments::enter(const LaneProgram& program,
                            std::size_t next,
                            std::int64_t begin,
                            std::int64_t end) {
  if (segments_.back().begin == segments_.back().end) {  // no chain yet
    segments_.back() = {begin, end, 0, 0};
    return;
  }
  if (segments_.back().begin == begin) return;
  LaneInstruction start = instructions_.back();
  if (start.op == LaneOp::zero || start.op == LaneOp::load) {
    instructions_.pop_back();
  } else {
    std::int32_t carrier = free_buffer(program, next);
    if (carrier < 0) {
      carries_acc_ = true;
      carrier = num_buffers_ + num_scratch_;
    }
    instructions_.push_back(LaneInstruction::store(carrier));
    start = LaneInstruction::load(carrier);
  }
  segments_.back().last = instructions_.size();
  segments_.push_back({begin, end, instructions_.size(), 0});
  instructions_.push_back(start);
}

}  // namespace accrue::kernels
