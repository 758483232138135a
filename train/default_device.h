// default_device(): where an Accelerator trains that was not told.
#pragma once

#include "accrue/core/device.h"

namespace accrue::train {

/// What the environment's ACCELERATE_TORCH_DEVICE names: cpu, cuda or cuda:N; without it the CPU.
/// Errors: ValueError for another name.
Device default_device();

}  // namespace accrue::train
