// DeviceScope of runtime.h, the same for CUDA and for the simulator.
#include "accrue/core/error.h"
#include "accrue/kernels/cuda/runtime.h"

namespace accrue::kernels::cuda {

DeviceScope::DeviceScope(int device) : before_(current_device()), changes_(before_ != device) {
  if (changes_) set_device(device);
}

DeviceScope::~DeviceScope() {
  if (!changes_ || !has_context(before_)) return;
  try {
    set_device(before_);
  } catch (const Error&) {  // the device is lost: the next call says so
  }
}

}  // namespace accrue::kernels::cuda
