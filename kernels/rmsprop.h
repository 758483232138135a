// One step of RMSprop, with torch's roundings.
#pragma once

#include <cstdint>

namespace accrue::kernels {

/// Moves parameter p by gradient g over the root of the average of squares; contiguous arrays of
/// `count` elements.
///
/// Order:   per element, each line rounded once, the numbers rounded to T first:
///          d = g, or -g to maximize
///          d = fma(weight_decay, p, d)            if weight_decay != 0
///          square_average = fma((1 - alpha) * d, d, square_average * alpha); s = square_average
///          average = fma(1 - alpha, d, average * alpha), s = fma(-average, average, s), +0 if that
///          is negative                            unless average is null
///          r = sqrt(s) + eps
///          p = p + -lr * d / r, each operation rounded, or with a buffer
///          buffer = buffer * momentum + d / r, each operation rounded; p = fma(-lr, buffer, p)
/// Source:  torch.optim.RMSprop on CPUs with FMA, except that torch keeps a negative s, whose root
///          is NaN.
template <class T>
struct RmspropStep {
  static constexpr const char* kName = "rmsprop";
  T* p = nullptr;
  const T* g = nullptr;
  T* square_average = nullptr;
  T* average = nullptr;  ///< null unless centered
  T* buffer = nullptr;   ///< null without momentum
  std::int64_t count = 0;
  double lr = 0.0, alpha = 0.0, eps = 0.0, weight_decay = 0.0, momentum = 0.0;
  bool maximize = false;
};

template <class T>
void launch_cpu(const RmspropStep<T>& args);

}  // namespace accrue::kernels
