// Layer normalisation and root-mean-square normalisation.
#pragma once

#include "accrue/autograd/variable.h"

#include <optional>

namespace accrue {

/// (x - mean) / sqrt(variance + eps) * weight + bias over the last dimensions of x.
///
/// Shapes:  x [..., normalized_shape], weight and bias normalized_shape or undefined; result as x.
///          normalized_shape has a dimension; a bias needs a weight.
/// Order:   mean and variance (divided by the count, not by one less) are two sums in the shape of
///          core/sum_order.h; formulas in kernels/layer_norm.h. Gradient of weight: a chain of
///          fma(dy, normalised x, acc) over rows, of bias: of dy, lane by lane.
/// Window:  x must be sample-major where weight or bias want a gradient; these are parameters.
/// Errors:  ShapeError, DTypeError, ValueError (eps negative or not finite); StateError in a
/// window.
Variable layer_norm(const Variable& x,
                    const Shape& normalized_shape,
                    const Variable& weight = {},
                    const Variable& bias = {},
                    double eps = 1e-5);

/// x / sqrt(mean(x^2) + eps) * weight over the last dimensions of x.
///
/// eps:     without a value the distance from 1 to the next number of x's dtype, as in torch.
/// The rest as layer_norm.
Variable rms_norm(const Variable& x,
                  const Shape& normalized_shape,
                  const Variable& weight = {},
                  std::optional<double> eps = std::nullopt);

}  // namespace accrue
