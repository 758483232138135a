// device_under_test(): where tests put the tensors that operations get.
#pragma once

#include "accrue/core/tensor.h"

#include <cstdlib>

namespace accrue::test {

/// The first CUDA device where the environment has ACCRUE_TEST_DEVICE, else the CPU. Entries of
/// ctest that accrue_on_device() makes set it: the same tests, on a device.
inline Device device_under_test() {
  static const bool is_cuda = std::getenv("ACCRUE_TEST_DEVICE") != nullptr;
  return is_cuda ? Device::cuda(0) : Device::cpu();
}

/// `x`, with all that share its storage, on the device under test; layouts stay.
inline Tensor there(Tensor x) {
  if (x.defined()) x.move_to(device_under_test());
  return x;
}

}  // namespace accrue::test
