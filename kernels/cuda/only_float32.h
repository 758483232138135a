// check_float32(): the operands of kernels that exist for one element type.
#pragma once

#include "accrue/core/tensor.h"

namespace accrue::kernels::cuda {

/// Errors:  DTypeError as on the CPU; DeviceError for float64, which runs there.
inline void check_float32(const char* operation, const Tensor& x) {
  visit_floating(x.dtype(), operation, [&]<class T>(T) {
    ACCRUE_CHECK(dtype_of<T> == DType::float32,
                 DeviceError,
                 operation,
                 "runs only on the CPU for float64, got a tensor on ",
                 x.device().str(),
                 "; move it with to(Device::cpu())");
  });
}

}  // namespace accrue::kernels::cuda
