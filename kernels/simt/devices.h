// Devices: which simulated GPU a thread uses, and of which its process holds a context.
#pragma once

namespace accrue::simt {

inline constexpr int kNumDevices = 4;

/// What set_device() chose; threads start with device 0.
int current_device();
/// As cudaSetDevice() since CUDA 12: the process gets a context of the device, hundreds of
/// megabytes on a real one, even if nothing else follows.
void set_device(int device);
/// Gives the process a context of the device that is current, as calls that work on it do.
void use_device();
bool has_context(int device);

}  // namespace accrue::simt
