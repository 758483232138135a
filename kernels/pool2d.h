// Pooling of images: arguments, formulas, order of sums. Images are dense planes [H, W].
#pragma once

#include "accrue/kernels/sliding.h"

#include <cstdint>

namespace accrue::kernels {

/// The planes of a tensor, and the windows on them.
struct PoolShape {
  std::int64_t planes = 0;
  Sliding sliding;  ///< inputs() below 2^31
};

/// The largest element of a window, whose elements come in order. The first of equal elements is
/// taken, and the last NaN if there is one (as in torch).
template <class T>
struct Largest {
  T value = -static_cast<T>(__builtin_inf());
  std::int32_t place = -1;

  ACCRUE_HD void take(T x, std::int64_t at) {
    if (!(x > value || x != x || place < 0)) return;
    value = x;
    place = static_cast<std::int32_t>(at);
  }
};

/// y = the largest element of each window; padding counts as absent.
///
/// places: where it lies in its plane. A window without elements gives -inf and -1.
template <class T>
struct MaxPool2d {
  static constexpr const char* kName = "max_pool2d";
  PoolShape shape;
  const T* x;
  T* y;
  std::int32_t* places;
};

/// dx[places[i]] += dy[i] from +0, i ascending. Places are those of MaxPool2d, in the windows.
template <class T>
struct MaxPool2dGrad {
  static constexpr const char* kName = "max_pool2d_grad";
  PoolShape shape;
  const T* dy;
  const std::int32_t* places;
  T* dx;
};

/// What an average divides by.
struct PoolDivisor {
  bool count_padding = true;  ///< elements of the window in the padded image, else in the image
  std::int64_t fixed = 0;     ///< unless 0, for all windows

  /// Of the window of output (i, j).
  ACCRUE_HD std::int64_t of(const Sliding& sliding, std::int64_t i, std::int64_t j) const {
    return fixed != 0 ? fixed : extent(sliding.h, i) * extent(sliding.w, j);
  }

 private:
  ACCRUE_HD std::int64_t extent(const SlidingAxis& axis, std::int64_t output) const {
    const std::int64_t room = count_padding ? axis.padding : 0;
    const std::int64_t begin = output * axis.stride - axis.padding, end = begin + axis.size;
    return (end < axis.in + room ? end : axis.in + room) - (begin > -room ? begin : -room);
  }
};

/// y = (sum of each window's elements) / divisor.
///
/// Order:   sums ascend over (tap h, tap w) from +0; padding is not added.
template <class T>
struct AvgPool2d {
  static constexpr const char* kName = "avg_pool2d";
  PoolShape shape;
  PoolDivisor divisor;
  const T* x;
  T* y;
};

/// Each window hands dy / divisor to its elements.
///
/// Order:   an element adds from +0, for the taps (h, w) ascending that reach it from a window.
template <class T>
struct AvgPool2dGrad {
  static constexpr const char* kName = "avg_pool2d_grad";
  PoolShape shape;
  PoolDivisor divisor;
  const T* dy;
  T* dx;
};

// T is float or double.
template <class T>
void launch_cpu(const MaxPool2d<T>& args);
template <class T>
void launch_cpu(const MaxPool2dGrad<T>& args);
template <class T>
void launch_cpu(const AvgPool2d<T>& args);
template <class T>
void launch_cpu(const AvgPool2dGrad<T>& args);

}  // namespace accrue::kernels
