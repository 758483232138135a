// One step of stochastic gradient descent, with torch's roundings.
#pragma once

#include <cstdint>

namespace accrue::kernels {

/// Moves parameter p against gradient g; contiguous arrays of `count` elements.
///
/// Order:   per element, each line rounded once, the numbers rounded to T first:
///          d = g, or -g to maximize
///          d = fma(weight_decay, p, d)                        if weight_decay != 0
///          buffer = d                                         if momentum != 0 and first_step,
///          else buffer = fma(1 - dampening, d, buffer * momentum)  if momentum != 0 (two
///          roundings) d = buffer, or fma(momentum, buffer, d) for Nesterov p = fma(-lr, d, p)
/// Errors:  ValueError for a momentum without a buffer.
/// Source:  torch.optim.SGD on CPUs with FMA.
template <class T>
struct SgdStep {
  static constexpr const char* kName = "sgd";
  T* p = nullptr;
  const T* g = nullptr;
  T* buffer = nullptr;  ///< read unless first_step; null without momentum
  std::int64_t count = 0;
  double lr = 0.0, momentum = 0.0, dampening = 0.0, weight_decay = 0.0;
  bool nesterov = false, maximize = false;
  bool first_step = false;  ///< the buffer starts as d, without dampening
};

template <class T>
void launch_cpu(const SgdStep<T>& args);

}  // namespace accrue::kernels
