#include "accrue/autograd/ops/image.h"

#include "accrue/autograd/window.h"

#include <string>

namespace accrue {
namespace {

constexpr std::int64_t kLargest = (std::int64_t{1} << 31) - 1;  // sums and products then fit

void check_range(const char* operation, const char* what, Size2 value, std::int64_t least) {
  const bool fits =
      value.h >= least && value.w >= least && value.h <= kLargest && value.w <= kLargest;
  ACCRUE_CHECK(fits,
               ValueError,
               operation,
               what,
               " must lie in [",
               least,
               ", 2^31), got ",
               value,
               "; check the layer's options");
}

/// As torch: ceil_mode rounds up unless the last window would begin behind the image.
std::int64_t num_outputs(const kernels::SlidingAxis& axis, bool ceil_mode) {
  const std::int64_t room = axis.in + 2 * axis.padding - axis.dilation * (axis.size - 1) - 1;
  const std::int64_t last = room + (ceil_mode ? axis.stride - 1 : 0);
  if (last < 0) return 0;
  const std::int64_t out = last / axis.stride + 1;
  return ceil_mode && (out - 1) * axis.stride >= axis.in + axis.padding ? out - 1 : out;
}

}  // namespace

kernels::Sliding sliding_over(const char* operation,
                              const Shape& shape,
                              const SlidingOptions& options) {
  const auto& [size, stride, padding, dilation, ceil_mode] = options;
  check_range(operation, "the kernel size", size, 1);
  check_range(operation, "stride", stride, 1);
  check_range(operation, "padding", padding, 0);
  check_range(operation, "dilation", dilation, 1);
  const Size2 in(shape[shape.rank() - 2], shape.back());
  kernels::Sliding sliding{{in.h, 0, size.h, stride.h, padding.h, dilation.h},
                           {in.w, 0, size.w, stride.w, padding.w, dilation.w}};
  sliding.h.out = num_outputs(sliding.h, ceil_mode);
  sliding.w.out = num_outputs(sliding.w, ceil_mode);
  ACCRUE_CHECK(sliding.h.out > 0 && sliding.w.out > 0,
               ShapeError,
               operation,
               "the kernel ",
               size,
               " with dilation ",
               dilation,
               " must fit into the image with padding ",
               padding,
               ", got an image of ",
               in,
               "; use a smaller kernel or more padding");
  return sliding;
}

SampleAxis kept_samples(const Tensor& x, int num_mixed, const char* operation, const char* what) {
  const SampleAxis axis = x.sample_axis();
  const bool keeps = axis.dim < x.rank() - num_mixed;
  check_keeps_samples(keeps, operation, what);
  return keeps ? axis : SampleAxis{};
}

}  // namespace accrue
