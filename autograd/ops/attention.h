// Scaled dot-product attention.
#pragma once

#include "accrue/autograd/variable.h"

#include <optional>

namespace accrue {

/// softmax(q k^T * scale) v for each index of the leading dimensions; with `causal` query i sees
/// keys 0 to i.
///
/// Shapes:  q [..., T, D], k [..., S, D], v [..., S, E] with equal leading dimensions, result
///          [..., T, E]. causal needs T = S. S = 0 gives +0.
/// scale:   1 / sqrt(D) (1 for D = 0) unless given, rounded once to the dtype.
/// Order:   scores, weighted sums and all gradients are chains, ascending; the softmax sums in the
///          shape of core/sum_order.h (kernels/attention.h). A causal row does not depend on keys
///          behind it, nor on how many there are.
/// Memory:  linear in T and S: backward computes the weights again.
/// Window:  samples lie in a leading dimension, the same in all three.
/// Errors:  ShapeError, DTypeError, ValueError (scale not finite); StateError in a window.
Variable scaled_dot_product_attention(const Variable& q,
                                      const Variable& k,
                                      const Variable& v,
                                      bool causal = false,
                                      std::optional<double> scale = std::nullopt);

}  // namespace accrue
