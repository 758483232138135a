#include "accrue/kernels/cpu/program_segments.h"

#include <algorithm>

namespace accrue::kernels {

ProgramSegments::ProgramSegments(const LaneProgram& program,
                                 std::int64_t period,
                                 std::int64_t block)
    : num_buffers_(program.num_buffers), num_carried_(program.num_scratch + 1) {
  for (const LaneInstruction& it : program.instructions) {
    if (it.op != LaneOp::chain) {
      instructions_.push_back(it);
      continue;
    }
    for (std::int64_t row = it.begin; row < it.end;) {
      const std::int64_t start = row / period * period;
      const std::int64_t begin = start + (row - start) / block * block;
      const std::int64_t end = std::min(begin + block, start + period);
      const std::int64_t stop = std::min(it.end, end);
      enter(begin, end);
      instructions_.push_back(LaneInstruction::chain(row - begin, stop - begin));
      row = stop;
    }
  }
  segments_.back().last = instructions_.size();
}

/// Makes the block [begin, end) the current one. acc crosses the border in its own buffer, unless
/// the chain behind the border starts it.
void ProgramSegments::enter(std::int64_t begin, std::int64_t end) {
  if (segments_.back().begin == segments_.back().end) {  // no chain yet
    segments_.back() = {begin, end, 0, 0};
    return;
  }
  if (segments_.back().begin == begin) return;
  const LaneInstruction last = instructions_.back();
  const bool starts = last.op == LaneOp::zero || last.op == LaneOp::load;
  const std::int32_t carrier = num_buffers_ + num_carried_ - 1;
  if (starts) {
    instructions_.pop_back();
  } else {
    instructions_.push_back(LaneInstruction::store(carrier));
  }
  segments_.back().last = instructions_.size();
  segments_.push_back({begin, end, instructions_.size(), 0});
  instructions_.push_back(starts ? last : LaneInstruction::load(carrier));
}

}  // namespace accrue::kernels
