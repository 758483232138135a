// What the operands of elementwise kernels must fulfil on every device.
#pragma once

#include "accrue/core/tensor.h"

namespace accrue::kernels {

inline void check_operand(const char* operation, const Tensor& x, const Shape& shape, DType dtype) {
  ACCRUE_CHECK(x.shape() == shape,
               ShapeError,
               operation,
               "operands must have the result's shape ",
               shape,
               ", got ",
               x.shape(),
               "; expand them first");
  ACCRUE_CHECK(x.dtype() == dtype,
               DTypeError,
               operation,
               "operands must have dtype ",
               dtype,
               ", got ",
               x.dtype(),
               "; convert with to()");
}

/// The first element, of whatever type.
inline const std::byte* bytes_of(const Tensor& x) {
  return visit_dtype(x.dtype(),
                     [&]<class T>(T) { return reinterpret_cast<const std::byte*>(x.data<T>()); });
}
inline std::byte* mutable_bytes_of(Tensor& x) {
  return visit_dtype(x.dtype(),
                     [&]<class T>(T) { return reinterpret_cast<std::byte*>(x.mutable_data<T>()); });
}

}  // namespace accrue::kernels
