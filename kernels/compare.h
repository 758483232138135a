// Comparisons of elements, and the choice between two tensors that a condition makes.
//
// All operands have the result's shape (expand them first; strides may be 0). Any layout is right.
#pragma once

#include "accrue/core/tensor.h"

#include <cstdint>

namespace accrue::kernels {

enum class CompareOp : std::uint8_t { eq, ne, lt, le, gt, ge };

const char* name_of(CompareOp op);

/// y = a op b, of dtype bool. With NaN only `ne` is true. a and b have one dtype, any but
/// bfloat16 and float16.
///
/// Errors:  ShapeError, DTypeError; StateError when elements of y share one location.
struct Compare {
  CompareOp op;
  const Tensor &a, &b;
  Tensor& y;
};
void launch_cpu(const Compare& args);

/// y = condition ? a : b; the condition is bool, the others have one dtype, any.
///
/// Errors:  as Compare.
struct Where {
  static constexpr const char* kName = "where";
  const Tensor &condition, &a, &b;
  Tensor& y;
};
void launch_cpu(const Where& args);

}  // namespace accrue::kernels
