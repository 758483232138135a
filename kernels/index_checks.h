// What the arguments of kernels/index.h must fulfil on every device, but for the indices' values.
#pragma once

#include "accrue/core/error.h"
#include "accrue/kernels/index.h"

#include <utility>

namespace accrue::kernels {

/// Indices lie in [0, index_limit).
inline std::int64_t index_limit(const Tensor& x, int dim) {
  return x.rank() == 0 ? 1 : x.size(dim);
}

inline void check_index(const char* operation, const Tensor& index, const Tensor& x, int dim) {
  ACCRUE_CHECK(index.dtype() == DType::int64,
               DTypeError,
               operation,
               "the index must be int64, got ",
               index.dtype(),
               "; convert with to()");
  bool fits = index.rank() == x.rank();
  for (int d = 0; d < x.rank() && fits; ++d) fits = d == dim || index.shape()[d] <= x.shape()[d];
  ACCRUE_CHECK(fits,
               ShapeError,
               operation,
               "the index must have the rank of the operand and be no larger but in dimension ",
               dim,
               ", got ",
               index.shape(),
               " for ",
               x.shape());
}

inline void check_result(const char* operation, const Tensor& index, const Tensor& y, DType dtype) {
  ACCRUE_CHECK(y.shape() == index.shape() && y.dtype() == dtype,
               ShapeError,
               operation,
               "what the index names must have shape ",
               index.shape(),
               " and dtype ",
               dtype,
               ", got ",
               y.shape(),
               " and ",
               y.dtype());
}

inline void check_arguments(const Gather& args) {
  check_index(args.operation, args.index, args.x, args.dim);
  check_result(args.operation, args.index, args.y, args.x.dtype());
}

inline void check_arguments(const ScatterAdd& args) {
  check_index(args.operation, args.index, args.dx, args.dim);
  check_result(args.operation, args.index, args.dy, args.dx.dtype());
}

/// The strides of x without the one along `dim`, which is returned too.
inline std::pair<Shape, std::int64_t> without_dim(const Tensor& x, int dim) {
  Shape strides = x.strides();
  if (x.rank() == 0) return {strides, 0};
  const std::int64_t along = strides[dim];
  strides[dim] = 0;
  return {strides, along};
}

}  // namespace accrue::kernels
