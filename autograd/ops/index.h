// Elements picked by an int64 index along a dimension.
#pragma once

#include "accrue/autograd/variable.h"

namespace accrue {

/// The entries index[0], index[1], ... of dimension `dim`; `index` has one dimension.
///
/// Grad:    an entry's gradients are added one by one in ascending order of the index, from +0.
/// Window:  `dim` must not be the sample dimension; x must not be a parameter, whose gradient would
///          not come as rows.
/// Errors:  IndexError with value and position of an index outside [0, size), before x is read;
///          ShapeError, DTypeError; StateError in a window.
Variable index_select(const Variable& x, int dim, const Tensor& index);

/// y[i, j, k] = x[i, index[i, j, k], k] for dim = 1, and so on.
///
/// Shapes:  the index has x's rank and is at most as large as x in the other dimensions.
/// Window:  as index_select; the index must be as large as x in the sample dimension.
/// Otherwise as index_select().
Variable gather(const Variable& x, int dim, const Tensor& index);

}  // namespace accrue
