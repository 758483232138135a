// Broadcasting in operations of several operands: what the result knows about samples, and the
// gradients of operands that were stretched.
#pragma once

#include "accrue/autograd/engine.h"

#include <span>

namespace accrue {

/// How a result is cut into rows for the gradients of parameters.
struct BroadcastRows {
  std::int64_t rows_per_sample = 1;
  bool rows_are_elements = false;  ///< the last dimension counts samples
};

/// `operands` expanded to one shape. Errors: ShapeError.
Shape joint_shape(std::span<const Variable* const> operands, const char* operation);

/// The sample axis of the result.
/// Errors: StateError in a window where operands disagree about samples.
SampleAxis joint_axis(std::span<const Variable* const> operands,
                      const Shape& result,
                      const char* operation);

/// Refuses, in a window, an operand that wants a gradient and lacks the samples of `y`, unless it
/// is a parameter that has the same value for all of them. Errors: StateError.
void check_stretched(const Variable& x, const Tensor& y, const char* operation);

/// Rows of `y`; `wanted` is true where an operand is a parameter that wants a gradient.
/// Errors: StateError in a window unless y is sample-major.
BroadcastRows broadcast_rows(const Tensor& y, bool wanted, const char* operation);

/// Gives input `i`, of `shape`, the gradient dy * factor (dy without a factor).
///
/// Order:   a parameter's rows chain lane by lane as acc = fma(dy, factor, acc); another variable
///          sums the products over stretched dimensions in the order of sum().
void give_broadcast(Backward& context,
                    std::size_t i,
                    const Tensor& dy,
                    const Tensor& factor,
                    const Shape& shape,
                    bool is_leaf,
                    const BroadcastRows& rows);

}  // namespace accrue
