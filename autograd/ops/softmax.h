// Softmax and its logarithm along one dimension.
#pragma once

#include "accrue/autograd/variable.h"

namespace accrue {

/// exp(x - max) / sum(exp(x - max)) along `dim`; NaN for a slice that holds NaN or +inf, or only
/// -inf.
///
/// Order:   sums in the shape of core/sum_order.h.
/// Window:  `dim` must not be the sample dimension.
/// Errors:  IndexError, DTypeError; StateError in a window.
Variable softmax(const Variable& x, int dim = -1);

/// (x - max) - log(sum(exp(x - max))) along `dim`. Otherwise as softmax().
Variable log_softmax(const Variable& x, int dim = -1);

}  // namespace accrue
