// Dropout: zeroes elements at random.
#pragma once

#include "accrue/autograd/variable.h"

#include <string_view>

namespace accrue {

/// Zeroes each element with probability p and multiplies the others with 1 / (1 - p), both
/// rounded; x itself when not training or for p = 0.
///
/// Grad:    the incoming gradient under the same mask.
/// Random:  outside windows torch's draws: bernoulli(1 - p) of default_generator(), row-major. In a
///          window the mask depends on where an element lies, so not on the split or on padding
///          (contract 17): on the seed of default_generator() when the window began, the window's
///          number, the sample's position, `path` and how often the micro-batch has dropped under
///          it before, the element's row in the sample and its indices in the other dimensions.
///          Modules pass their path in the model.
/// Window:  x must know its samples.
/// Errors:  ValueError for p outside [0, 1]; DTypeError; StateError in a window.
Variable dropout(const Variable& x,
                 double p = 0.5,
                 bool training = true,
                 std::string_view path = {});

}  // namespace accrue
