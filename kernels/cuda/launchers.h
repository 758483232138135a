// The table of the kernels that CUDA has.
#pragma once

#include "accrue/kernels/launch.h"

namespace accrue::kernels::cuda {

/// A launcher for every type of arguments that launch_cuda takes. It queues on the current stream.
const LaunchTable& launchers();

}  // namespace accrue::kernels::cuda
