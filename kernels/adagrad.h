// One step of Adagrad, with torch's roundings.
#pragma once

#include <cstdint>

namespace accrue::kernels {

/// Moves parameter p by gradient g over the root of the sum of squares so far; contiguous arrays of
/// `count` elements.
///
/// Order:   rate = -lr / (1 + (step - 1) * lr_decay) in double; then per element, each line rounded
///          once, the numbers rounded to T first:
///          d = g, or -g to maximize
///          d = fma(weight_decay, p, d)            if weight_decay != 0
///          sum = fma(d, d, sum)
///          p = p + rate * d / (sqrt(sum) + eps), each operation rounded
/// Source:  torch.optim.Adagrad on CPUs with FMA.
template <class T>
struct AdagradStep {
  static constexpr const char* kName = "adagrad";
  T* p = nullptr;
  const T* g = nullptr;
  T* sum = nullptr;
  std::int64_t count = 0;
  std::int64_t step = 1;  ///< the first is 1
  double lr = 0.0, lr_decay = 0.0, eps = 0.0, weight_decay = 0.0;
  bool maximize = false;
};

template <class T>
void launch_cpu(const AdagradStep<T>& args);

}  // namespace accrue::kernels
