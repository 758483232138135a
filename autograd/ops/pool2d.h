// Pooling of images.
#pragma once

#include "accrue/autograd/variable.h"
#include "accrue/core/size2.h"

#include <optional>

namespace accrue {

/// A stride that stands for the kernel size.
inline constexpr Size2 kKernelSize = -1;

struct MaxPool2dOptions {
  Size2 stride = kKernelSize, padding = 0, dilation = 1;
  bool ceil_mode = false;  ///< also a last window that leaves the image
};

/// The largest element of each window of `size`, as torch.nn.functional.max_pool2d.
///
/// Of equal elements the first is taken and gets the gradient; a NaN wins over every number.
/// Padding holds no elements; a window without any gives -inf.
///
/// Shapes:  x [..., H, W], result [..., OH, OW] with OH = (H + 2 padding - dilation (size - 1) - 1)
///          / stride + 1, rounded down unless ceil_mode.
/// Order:   an element adds the gradients of its windows in row-major order, from +0.
/// Window:  samples lie in a leading dimension.
/// Errors:  ShapeError, DTypeError, ValueError (options out of range, padding above size / 2);
///          StateError in a window.
Variable max_pool2d(const Variable& x, Size2 size, const MaxPool2dOptions& options = {});

struct AvgPool2dOptions {
  Size2 stride = kKernelSize, padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< divide by the window's size in the padded image
  std::optional<std::int64_t> divisor_override = {};
};

/// The mean of each window of `size`, as torch.nn.functional.avg_pool2d.
///
/// Shapes, window: as max_pool2d without dilation.
/// Order:   sums ascend over (tap h, tap w) from +0, then one division. An element adds its
///          windows' gradients as kernels/pool2d.h says.
/// Errors:  as max_pool2d; ValueError for a divisor of 0.
Variable avg_pool2d(const Variable& x, Size2 size, const AvgPool2dOptions& options = {});

}  // namespace accrue
