// Sums, means and norms over dimensions.
#pragma once

#include "accrue/autograd/variable.h"

#include <initializer_list>
#include <span>

namespace accrue {

/// Sum over `dims` (all of them when empty).
///
/// Order:   each result sums its elements in row-major order of the summed dimensions, in the
///          shape of core/sum_order.h. The sum of nothing is +0.
/// Window:  the sample dimension must not be summed: reduce losses with Loss::from_rows.
/// Errors:  IndexError, ShapeError (a dimension twice), DTypeError; StateError in a window.
Variable sum(const Variable& x, std::span<const int> dims, bool keep_dims = false);
Variable sum(const Variable& x, std::initializer_list<int> dims, bool keep_dims = false);
Variable sum(const Variable& x);

/// sum() divided once by the number of summed elements; NaN for none.
Variable mean(const Variable& x, std::span<const int> dims, bool keep_dims = false);
Variable mean(const Variable& x, std::initializer_list<int> dims, bool keep_dims = false);
Variable mean(const Variable& x);

/// The 2-norm over `dims` (all of them when empty): sqrt of the sum of squares.
///
/// Order:   squares are rounded, then added in the order of sum(). They overflow from 1.8e19, as in
///          torch. The norm of nothing is +0.
/// Grad:    x * (dy / y), +0 where y is 0.
/// Otherwise as sum().
Variable norm(const Variable& x, std::span<const int> dims, bool keep_dims = false);
Variable norm(const Variable& x, std::initializer_list<int> dims, bool keep_dims = false);
Variable norm(const Variable& x);

/// Sums `x` over the dimensions that broadcasting `shape` to it stretched. Order: as sum().
Tensor sum_to_shape(const Tensor& x, const Shape& shape);

}  // namespace accrue
