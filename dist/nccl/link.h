// The NCCL transport: connects the GPUs of ranks, one rank per GPU.
#pragma once

#include "accrue/dist/device_link.h"

/// The one transport, which lives as long as the process.
extern "C" accrue::dist::DeviceTransport* accrue_cuda_transport();
