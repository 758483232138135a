// LaneMerges: a lane program that only adds buffers: finished sums of lanes, ranks and uses.
#pragma once

#include "accrue/kernels/lane_program.h"

#include <cstdint>
#include <span>

namespace accrue::kernels {

/// Runs a program whose chains have no rows on `count` elements of each buffer.
///
/// Shapes:  each buffer holds `count` elements; one that is stored may be one that is loaded.
/// Order:   as the program says, for each element on its own.
template <class T>
struct LaneMerges {
  static constexpr const char* kName = "lane_merges";
  LaneProgram program;
  std::span<T* const> buffers;  ///< program.num_buffers of them
  std::int64_t count = 0;
};

template <class T>
void launch_cpu(const LaneMerges<T>& args);

}  // namespace accrue::kernels
