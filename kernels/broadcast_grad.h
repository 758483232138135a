// Gradient of a parameter that an elementwise operation broadcast.
#pragma once

#include "accrue/core/tensor.h"
#include "accrue/kernels/lane_program.h"

#include <span>

namespace accrue::kernels {

/// Chains a * b into the parameter's elements, as a lane program says (contract 5, 6).
///
/// The parameter, of shape P, was expanded to the shape S of the incoming gradient a. The first
/// `row_dims` dimensions of S, flattened, count rows.
///
/// Shapes:  a S, b S or undefined (stands for ones), any layouts; each buffer P contiguous.
/// Order:   each element of P runs `program`. A chain takes rows in ascending order, in a row the
///          elements of S that the parameter's element was expanded to in row-major order:
///          acc = fma(a, b, acc). Rows of a that are all zero are skipped, so 0 * inf adds nothing.
/// Errors:  ShapeError, DTypeError; IndexError and ValueError of check_lane_program.
template <class T>
struct BroadcastGrad {
  static constexpr const char* kName = "broadcast_grad";
  const Tensor &a, &b;
  int row_dims;
  Shape shape;  ///< P
  LaneProgram program;
  std::span<T* const> buffers;  ///< program.num_buffers of them
};

// T is float (the bit contract) or double.
template <class T>
void launch_cpu(const BroadcastGrad<T>& args);

}  // namespace accrue::kernels
