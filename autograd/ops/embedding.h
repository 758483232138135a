// Embedding: vectors of a table by index.
#pragma once

#include "accrue/autograd/variable.h"

#include <optional>

namespace accrue {

/// Row indices[...] of the table for each index.
///
/// Shapes:  table [V, E], indices int64 of any shape, result [indices..., E].
/// padding_idx: this row of the table gets no gradient; negative counts from the end. Its value is
///          gathered like any other.
/// Order:   each row of the table chains the rows of the incoming gradient that have its index,
///          ascending, lane by lane.
/// Cost:    backward reads its rows once. The gradient is dense: a buffer of the table's size is
///          filled where a lane starts in a micro-batch and its sum outlives it, and added where
///          lanes merge; a micro-batch that only continues a lane touches the rows it uses.
/// Window:  indices must be sample-major, the table a parameter.
/// Errors:  ShapeError, DTypeError, IndexError (an index, with its position; padding_idx);
///          StateError in a window.
Variable embedding(const Variable& table,
                   const Tensor& indices,
                   std::optional<std::int64_t> padding_idx = std::nullopt);

}  // namespace accrue
