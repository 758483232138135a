// Convolutions of images.
#pragma once

#include "accrue/autograd/variable.h"
#include "accrue/core/size2.h"

namespace accrue {

struct Conv2dOptions {
  Size2 stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;  ///< group g maps its share of the inputs to its share of the outputs
};

/// y = conv(x, w) + bias, as torch.nn.functional.conv2d; padding is zeros.
///
/// Shapes:  x [N, C, H, W], w [O, C / groups, KH, KW], bias [O] or undefined, result
///          [N, O, OH, OW] with OH = (H + 2 padding - dilation (KH - 1) - 1) / stride + 1, rounded
///          down. N, C and O may be 0.
/// Order:   per output one chain over (channel, tap h, tap w) ascending from +0, padding included
///          as +0, bias added last. Gradient of x: per tap one chain over the group's outputs; an
///          element adds its taps ascending. Gradients of w and bias: those of a linear layer with
///          rows (sample, output pixel), lane by lane (kernels/conv2d.h, docs/numerics.md 5).
/// Window:  x must be sample-major, w and bias parameters.
/// Errors:  ShapeError, DTypeError, ValueError (options out of range); StateError in a window.
Variable conv2d(const Variable& x,
                const Variable& w,
                const Variable& bias = {},
                const Conv2dOptions& options = {});

}  // namespace accrue
