// Images: the checks that operations on [..., H, W] share.
#pragma once

#include "accrue/autograd/variable.h"
#include "accrue/core/size2.h"
#include "accrue/kernels/sliding.h"

namespace accrue {

/// How a kernel slides over an image.
struct SlidingOptions {
  Size2 size = 1, stride = 1, padding = 0, dilation = 1;
  bool ceil_mode = false;  ///< as in torch: also a last output whose window leaves the image
};

/// The axes of an operation on images, the last two dimensions of `shape`.
///
/// Errors: ValueError for numbers out of range, ShapeError for an image that gives no output.
kernels::Sliding sliding_over(const char* operation,
                              const Shape& shape,
                              const SlidingOptions& options);

/// The sample axis of a result whose last `num_mixed` dimensions mix what x holds there.
/// Errors: StateError in a window, naming `what`, where samples lie in one of them.
SampleAxis kept_samples(const Tensor& x, int num_mixed, const char* operation, const char* what);

}  // namespace accrue
