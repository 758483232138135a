// run_grid(): runs a kernel block by block, warp by warp.
#pragma once

#include "accrue/kernels/simt/simt.h"
#include "accrue/tests/ptx/kernel.h"

namespace accrue::ptx {

/// Runs the blocks in the order of simt::run_options(), with the parameters as the kernel has them
/// in memory. Lanes of a warp run together while they stand at the same instruction, those that are
/// behind first. Shared memory begins with all bits set. Returns the instructions run, counted per
/// lane.
///
/// Errors:  simt::KernelFault that names kernel, block, thread and statement.
std::int64_t run_grid(const Kernel& kernel,
                      const simt::LaunchShape& shape,
                      const std::vector<std::byte>& parameters);

}  // namespace accrue::ptx
