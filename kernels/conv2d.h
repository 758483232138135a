// Convolutions of images: arguments and the order of every sum.
//
// A convolution is a linear layer whose rows are (sample, output pixel), ascending, and whose
// inputs are the patch of the image that the pixel sees: (channel of its group, tap h, tap w),
// ascending. Padding is +0 in the patch, a factor like any other. Patches exist for a few output
// lines at a time. The bits equal plain std::fma loops in the order stated, for every split of the
// work. All tensors are dense, [N, C, H, W].
#pragma once

#include "accrue/kernels/lane_program.h"
#include "accrue/kernels/sliding.h"

#include <span>

namespace accrue::kernels {

/// The sizes of a convolution. Channels are multiples of `groups`, which is at least 1.
struct ConvShape {
  std::int64_t samples = 0, in_channels = 0, out_channels = 0, groups = 1;
  Sliding sliding;

  ACCRUE_HD std::int64_t group_in() const { return in_channels / groups; }
  ACCRUE_HD std::int64_t group_out() const { return out_channels / groups; }
  /// Elements of a patch.
  ACCRUE_HD std::int64_t depth() const { return group_in() * sliding.taps(); }
  /// Rows of the linear layer.
  ACCRUE_HD std::int64_t rows() const { return samples * sliding.outputs(); }
};

/// y = conv(x, w) + bias.
///
/// Shapes:  x [N, C, H, W], w [O, C / groups, KH, KW], bias [O] or null, y [N, O, OH, OW].
/// Order:   y = (chain over the patch ascending from +0 of fma(w, patch, acc)) + bias.
template <class T>
struct Conv2dForward {
  static constexpr const char* kName = "conv2d";
  ConvShape shape;
  const T *x, *w, *bias;
  T* y;
};

/// The gradient of x.
///
/// Order:   element (n, c, i, j) starts at +0 and adds, for the taps (h, w) ascending that reach it
///          from an output pixel, the chain over the group's output channels o ascending from +0 of
///          fma(w[o, c, h, w], dy[n, o, pixel], acc).
template <class T>
struct Conv2dInputGrad {
  static constexpr const char* kName = "conv2d_input_grad";
  ConvShape shape;
  const T *dy, *w;
  T* dx;
};

/// The gradient of w, chained and merged as a lane program says.
///
/// Shapes:  each buffer as w.
/// Order:   every element runs `program` over the rows with fma(dy, patch, acc). Rows of dy that
///          are zero in all O channels are skipped, so 0 * inf adds nothing (contract 5).
/// Errors:  IndexError and ValueError of check_lane_program.
template <class T>
struct Conv2dWeightGrad {
  static constexpr const char* kName = "conv2d_weight_grad";
  ConvShape shape;
  const T *dy, *x;
  LaneProgram program;
  std::span<T* const> buffers;  ///< program.num_buffers of them
};

/// The gradient of the bias: rows as in Conv2dWeightGrad with fma(dy, 1, acc) = acc + dy.
///
/// Shapes:  each buffer [O].
template <class T>
struct Conv2dBiasGrad {
  static constexpr const char* kName = "conv2d_bias_grad";
  ConvShape shape;
  const T* dy;
  LaneProgram program;
  std::span<T* const> buffers;  ///< program.num_buffers of them
};

// T is float (the bit contract, fast) or double (for gradient checks).
template <class T>
void launch_cpu(const Conv2dForward<T>& args);
template <class T>
void launch_cpu(const Conv2dInputGrad<T>& args);
template <class T>
void launch_cpu(const Conv2dWeightGrad<T>& args);
template <class T>
void launch_cpu(const Conv2dBiasGrad<T>& args);

}  // namespace accrue::kernels
