// LaneSum: what a lane program adds up, for those who do not keep its order.
#pragma once

#include "accrue/kernels/lane_program.h"

#include <utility>
#include <vector>

namespace accrue::kernels::cuda {

/// What a buffer holds at the end of a program: the sum of buffers as they were before, perhaps
/// itself, and of rows.
struct LaneSum {
  std::int32_t slot = 0;
  std::vector<std::int32_t> buffers = {};
  std::vector<std::pair<std::int64_t, std::int64_t>> rows = {};  ///< [begin, end), none empty

  bool reads(std::int32_t buffer) const;
};

/// Appends the sums of the buffers that a program changes, in an order in which none reads a buffer
/// that one before it writes. False where there is no such order, or where the program uses a value
/// twice: those of windows do not.
bool find_lane_sums(const LaneProgram& program, std::vector<LaneSum>& sums);

}  // namespace accrue::kernels::cuda
