// Views: other shapes of the same elements. They keep, move or drop the sample dimension.
#pragma once

#include "accrue/autograd/variable.h"

#include <initializer_list>
#include <span>

namespace accrue {

/// The same elements in row-major order under `shape`; one size may be -1.
/// Errors: ShapeError.
Variable reshape(const Variable& x, const Shape& shape);
Variable flatten(const Variable& x, int start = 0, int end = -1);
/// Reorders the dimensions. Errors: ShapeError unless `dims` is a permutation.
Variable permute(const Variable& x, std::span<const int> dims);
Variable permute(const Variable& x, std::initializer_list<int> dims);
Variable transpose(const Variable& x, int dim0, int dim1);
/// Stretches sizes of 1. Grad: sums over the stretched dimensions (order of sum()).
/// Errors: ShapeError; StateError in a window when samples would be stretched.
Variable expand(const Variable& x, const Shape& shape);
/// Fixes one index of `dim`. Errors: IndexError; StateError in a window along the samples.
Variable select(const Variable& x, int dim, std::int64_t index);
/// Elements [start, start + length) of `dim`. Errors: as select.
Variable narrow(const Variable& x, int dim, std::int64_t start, std::int64_t length);
/// Elements start, start + step, ... below `end`, clipped as torch does. Errors: as select.
Variable slice(
    const Variable& x, int dim, std::int64_t start, std::int64_t end, std::int64_t step = 1);
/// Joins along `dim`. Errors: ValueError, ShapeError, DTypeError; StateError in a window along the
/// samples or when the sample dimensions differ.
Variable cat(std::span<const Variable> inputs, int dim = 0);

}  // namespace accrue
