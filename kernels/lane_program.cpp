// The checks of a lane program.
#include "accrue/kernels/lane_program.h"

#include "accrue/core/error.h"

namespace accrue::kernels {

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
    const bool uses_slot = op == LaneOp::load || op == LaneOp::merge || op == LaneOp::store;
    ACCRUE_CHECK(!uses_slot || (slot >= 0 && slot < num_slots),
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
