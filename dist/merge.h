// merge: adds finished partial sums as a lane program says.
#pragma once

#include "accrue/kernels/lane_program.h"

#include <cstdint>
#include <span>

namespace accrue::dist {

/// Runs a program that chains no rows over `count` elements of each slot. A slot that is stored may
/// be one that is loaded. T is float or double.
template <class T>
void merge(const kernels::LaneProgram& program, std::span<T* const> slots, std::int64_t count);

}  // namespace accrue::dist
