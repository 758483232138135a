// common_device(): where the operands of an operation are, which must be one place.
#pragma once

#include "accrue/core/tensor.h"

namespace accrue {

/// Refuses an operand on another device; an undefined one is left out.
inline void check_device(const char* operation, Device device, const Tensor& tensor) {
  ACCRUE_CHECK(!tensor.defined() || tensor.device() == device,
               DeviceError,
               operation,
               "operands must be on one device, got ",
               device.str(),
               " and ",
               tensor.device().str(),
               "; move one with to()");
}

/// The device of `first` and of all others that are defined. Errors: DeviceError naming both.
template <class... Others>
Device common_device(const char* operation, const Tensor& first, const Others&... others) {
  const Device device = first.device();
  (check_device(operation, device, others), ...);
  return device;
}

}  // namespace accrue
