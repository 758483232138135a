// Maxima and minima along a dimension.
#pragma once

#include "accrue/autograd/variable.h"

namespace accrue {

/// What max() and min() return.
struct ValuesAndIndices {
  Variable values;
  Tensor indices;  ///< int64
};

/// The largest (smallest) elements along `dim` and their places in it. A NaN wins; of equal
/// elements the first is taken.
///
/// Shapes:  x without `dim`, or with size 1 in its place.
/// Grad:    dy to the element that was taken, +0 to all others.
/// Window:  `dim` must not be the sample dimension.
/// Errors:  IndexError (also for a dimension of size 0), DTypeError; StateError in a window.
ValuesAndIndices max(const Variable& x, int dim, bool keep_dim = false);
ValuesAndIndices min(const Variable& x, int dim, bool keep_dim = false);

/// The places alone. Otherwise as max() and min().
Tensor argmax(const Variable& x, int dim, bool keep_dim = false);
Tensor argmin(const Variable& x, int dim, bool keep_dim = false);

}  // namespace accrue
