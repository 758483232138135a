#include "accrue/train/default_device.h"

#include "accrue/core/device_name.h"
#include "accrue/core/error.h"

#include <cstdlib>

namespace accrue::train {

Device default_device() {
  const char* const name = std::getenv("ACCELERATE_TORCH_DEVICE");
  if (name == nullptr) return Device::cpu();
  const std::optional<Device> named = device_named(name);
  ACCRUE_CHECK(named,
               ValueError,
               "accelerator",
               "ACCELERATE_TORCH_DEVICE must be cpu, cuda or cuda:N, got '",
               name,
               "'; unset it, or give device");
  return *named;
}

}  // namespace accrue::train
