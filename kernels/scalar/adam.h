// The Adam step of one element, with the roundings that kernels/adam.h lists.
#pragma once

#include "accrue/core/host_device.h"
#include "accrue/kernels/adam.h"
#include "accrue/kernels/scalar/float_ops.h"

#include <cmath>

namespace accrue::kernels::scalar {

enum class AdamAverage : unsigned char { scaled, near, far };  ///< how m takes in a gradient

/// The numbers of a step, rounded to T.
template <class T>
struct AdamNumbers {
  T sign, shrink, decay;  ///< of the gradient; of the parameter; of the parameter in the gradient
  T beta1, w1, rest1;     ///< rest1 = 1 - w1 in T
  T beta2, w2;
  T rate, root, eps;

  explicit AdamNumbers(const AdamStep<T>& step)
      : sign(step.maximize ? T(-1) : T(1)),
        shrink(step.decoupled ? static_cast<T>(1.0 - step.lr * step.weight_decay) : T(1)),
        decay(step.decoupled ? T(0) : static_cast<T>(step.weight_decay)),
        beta1(static_cast<T>(step.beta1)),
        w1(static_cast<T>(1.0 - step.beta1)),
        rest1(T(1) - w1),
        beta2(static_cast<T>(step.beta2)),
        w2(static_cast<T>(1.0 - step.beta2)),
        rate(static_cast<T>(-(step.lr / correction(step.beta1, step.step)))),
        root(static_cast<T>(std::sqrt(correction(step.beta2, step.step)))),
        eps(static_cast<T>(step.eps)) {}

 private:
  static double correction(double beta, std::int64_t step) {
    return 1.0 - std::pow(beta, static_cast<double>(step));
  }
};

template <class T>
ACCRUE_HD AdamAverage average_of(bool lerp, const AdamNumbers<T>& n) {
  if (!lerp) return AdamAverage::scaled;
  return n.w1 < T(0.5) ? AdamAverage::near : AdamAverage::far;
}

/// Which form a step has.
struct AdamParts {
  AdamAverage average;
  bool decays, has_max;
};

/// Moves p; `v_max` is used with has_max only.
template <class T>
ACCRUE_HD void adam_element(
    const AdamNumbers<T>& n, AdamParts parts, T& p, T g, T& m, T& v, T* v_max) {
  const T x = p * n.shrink;
  T d = n.sign * g;
  if (parts.decays) d = fma(n.decay, x, d);
  T mean = m;
  if (parts.average == AdamAverage::scaled) mean = fma(n.w1, d, mean * n.beta1);
  if (parts.average == AdamAverage::near) mean = fma(n.w1, d - mean, mean);
  if (parts.average == AdamAverage::far) mean = fma(-(d - mean), n.rest1, d);
  T square = fma(n.w2 * d, d, v * n.beta2);
  m = mean;
  v = square;
  if (parts.has_max) *v_max = square = square > *v_max ? square : *v_max;
  p = x + n.rate * mean / (sqrt(square) / n.root + n.eps);
}

}  // namespace accrue::kernels::scalar
