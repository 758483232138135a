// The NCCL transport: connects the GPUs of ranks, one rank per GPU.
#pragma once

#include "accrue/dist/device_link.h"

namespace accrue::dist::nccl {

DeviceTransport& transport();

}  // namespace accrue::dist::nccl
