// current_device: the simulated GPU of the calling thread.
#pragma once

namespace accrue::simt::nccl {

/// What cudaSetDevice() chose. Threads and processes start with device 0.
inline int& current_device() {
  thread_local int device = 0;
  return device;
}

}  // namespace accrue::simt::nccl
