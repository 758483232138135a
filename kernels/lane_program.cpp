// The checks of a lane program, and where a cut may keep acc.
#include "accrue/kernels/lane_program.h"

#include "accrue/core/error.h"

#include <algorithm>

namespace accrue::kernels {
namespace {

bool uses_slot(LaneOp op) {
  return op == LaneOp::load || op == LaneOp::merge || op == LaneOp::store;
}

}  // namespace

std::int32_t free_buffer(const LaneProgram& program, std::size_t next) {
  const auto rest = program.instructions.subspan(next);
  for (std::int32_t slot = 0; slot < program.num_buffers; ++slot) {
    const auto use = std::find_if(rest.begin(), rest.end(), [&](const LaneInstruction& it) {
      return uses_slot(it.op) && it.slot == slot;
    });
    if (use != rest.end() && use->op == LaneOp::store) return slot;
  }
  return -1;
}

std::vector<LaneInstruction> without_chains(const LaneProgram& program) {
  std::vector<LaneInstruction> idle;
  for (const LaneInstruction& instruction : program.instructions) {
    if (instruction.op == LaneOp::chain) continue;
    const bool is_pair = instruction.op == LaneOp::store && !idle.empty() &&
                         idle.back().op == LaneOp::load && idle.back().slot == instruction.slot;
    is_pair ? idle.pop_back() : idle.push_back(instruction);
  }
  return idle;
}

void check_lane_program(const LaneProgram& program,
                        const char* operation,
                        std::int64_t rows,
                        std::int64_t num_buffers) {
  ACCRUE_CHECK(program.num_buffers == num_buffers,
               ValueError,
               operation,
               "the lane program needs ",
               program.num_buffers,
               " buffers, got ",
               num_buffers,
               "; pass one pointer for each");
  ACCRUE_CHECK(program.num_scratch >= 0 && program.num_scratch <= kMaxLaneScratch,
               ValueError,
               operation,
               "a lane program has at most ",
               kMaxLaneScratch,
               " scratch slots, got ",
               program.num_scratch,
               "; merge lanes earlier");
  const std::int32_t num_slots = program.num_buffers + program.num_scratch;
  for (const auto& instruction : program.instructions) {
    const auto [op, slot, begin, end] = instruction;
    ACCRUE_CHECK(!uses_slot(op) || (slot >= 0 && slot < num_slots),
                 IndexError,
                 operation,
                 "slots of the lane program must lie in [0, ",
                 num_slots,
                 "), got ",
                 slot,
                 "; declare it in num_buffers or num_scratch");
    ACCRUE_CHECK(op != LaneOp::chain || (begin >= 0 && begin <= end && end <= rows),
                 IndexError,
                 operation,
                 "chains of the lane program must lie in [0, ",
                 rows,
                 "], got [",
                 begin,
                 ", ",
                 end,
                 "); rows are those of this micro-batch");
  }
}

}  // namespace accrue::kernels
