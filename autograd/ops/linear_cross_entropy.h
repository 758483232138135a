// A linear layer and cross-entropy as one operation that never holds all logits.
#pragma once

#include "accrue/autograd/ops/losses.h"

namespace accrue {

/// cross_entropy_rows(linear(x, w, bias), target, options), some rows of logits at a time: they are
/// made in the forward pass, and again in the backward pass, but for the first chunk, which waits.
///
/// Shapes:  x [N, I], w [O, I], bias [O] or undefined, target [N] int64, result [N].
/// Order:   the bits of the two operations apart, results and gradients, whatever `chunk_rows`.
/// Memory:  one chunk of logits. Where the rows of one backward pass lie in several lanes and take
///          several chunks, also the sums of lanes that wait for others, log2(lanes) at most.
/// Grad:    to x, w and bias.
/// Window:  x must be sample-major, w and bias parameters.
/// Errors:  IndexError (target outside [0, O), before any other memory is read), ShapeError,
///          DTypeError, ValueError (label_smoothing, chunk_rows < 0); StateError in a window.
///
/// `chunk_rows` are made at a time, 0: as many as take a few MiB, or a few tiles of a product.
Variable linear_cross_entropy_rows(const Variable& x,
                                   const Variable& w,
                                   const Variable& bias,
                                   const Tensor& target,
                                   const CrossEntropyOptions& options = {},
                                   std::int64_t chunk_rows = 0);

}  // namespace accrue
