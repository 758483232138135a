// One step of Adam or AdamW, with torch's roundings.
#pragma once

#include <cstdint>

namespace accrue::kernels {

/// Moves parameter p by the averages m of gradients and v of their squares; contiguous arrays of
/// `count` elements.
///
/// Order:   bc1 = 1 - beta1^step, bc2 = 1 - beta2^step, rate = -lr / bc1 and root = sqrt(bc2) in
///          double; then per element, each line rounded once, the numbers rounded to T first:
///          d = g, or -g to maximize
///          p = p * (1 - lr * weight_decay)        if decoupled (AdamW), else
///          d = fma(weight_decay, p, d)            if weight_decay != 0
///          with w = 1 - beta1: m = fma(w, d - m, m)  if lerp and w < 1/2, as recent torch does;
///          m = fma(-(d - m), 1 - w, d)            if lerp and w >= 1/2;
///          m = fma(w, d, m * beta1)               if not lerp, as torch 1.13 does
///          v = fma((1 - beta2) * d, d, v * beta2)
///          v_max = max(v_max, v), taken for v below, unless null
///          p = p + rate * m / (sqrt(v) / root + eps), each operation rounded
/// Errors:  ValueError for a step below 1.
/// Source:  torch.optim.Adam and AdamW on CPUs with FMA.
template <class T>
struct AdamStep {
  static constexpr const char* kName = "adam";
  T* p = nullptr;
  const T* g = nullptr;
  T* m = nullptr;
  T* v = nullptr;
  T* v_max = nullptr;  ///< null without amsgrad
  std::int64_t count = 0;
  std::int64_t step = 1;  ///< the first is 1
  double lr = 0.0, beta1 = 0.0, beta2 = 0.0, eps = 0.0, weight_decay = 0.0;
  bool decoupled = false, lerp = true, maximize = false;
};

template <class T>
void launch_cpu(const AdamStep<T>& args);

}  // namespace accrue::kernels
