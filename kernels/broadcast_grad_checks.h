// What the arguments of kernels/broadcast_grad.h must fulfil on every device.
#pragma once

#include "accrue/kernels/broadcast_grad.h"

namespace accrue::kernels {

template <class T>
void check_dtype(const BroadcastGrad<T>& args, const Tensor& operand) {
  ACCRUE_CHECK(operand.dtype() == dtype_of<T>,
               DTypeError,
               args.kName,
               "operands must have the parameter's dtype ",
               dtype_of<T>,
               ", got ",
               operand.dtype(),
               "; convert with to()");
}

template <class T>
void check_arguments(const BroadcastGrad<T>& args) {
  const Shape& shape = args.a.shape();
  check_dtype(args, args.a);
  if (args.b.defined()) check_dtype(args, args.b);
  ACCRUE_CHECK(!args.b.defined() || args.b.shape() == shape,
               ShapeError,
               args.kName,
               "the factor must have the gradient's shape ",
               shape,
               ", got ",
               args.b.shape(),
               "; expand it first");
  ACCRUE_CHECK(broadcast_shapes(args.shape, shape, args.kName) == shape,
               ShapeError,
               args.kName,
               "the parameter must broadcast to the gradient's shape ",
               shape,
               ", got ",
               args.shape,
               "; reduce the gradient first");
  ACCRUE_CHECK(args.row_dims >= 0 && args.row_dims <= shape.rank(),
               ShapeError,
               args.kName,
               "row_dims must lie in [0, ",
               shape.rank(),
               "], got ",
               args.row_dims,
               "; it counts leading dimensions");
  check_lane_program(
      args.program, args.kName, product(shape, 0, args.row_dims), std::ssize(args.buffers));
}

}  // namespace accrue::kernels
