// The Adagrad step of one element, with the roundings that kernels/adagrad.h lists.
#pragma once

#include "accrue/core/host_device.h"
#include "accrue/kernels/adagrad.h"
#include "accrue/kernels/scalar/float_ops.h"

namespace accrue::kernels::scalar {

/// The numbers of a step, rounded to T.
template <class T>
struct AdagradNumbers {
  T sign, decay, rate, eps;

  explicit ACCRUE_HD AdagradNumbers(const AdagradStep<T>& step)
      : sign(step.maximize ? T(-1) : T(1)),
        decay(static_cast<T>(step.weight_decay)),
        rate(static_cast<T>(
            -(step.lr / (1.0 + static_cast<double>(step.step - 1) * step.lr_decay)))),
        eps(static_cast<T>(step.eps)) {}
};

template <class T>
ACCRUE_HD void adagrad_element(const AdagradNumbers<T>& n, bool decays, T& p, T g, T& sum) {
  T d = n.sign * g;
  if (decays) d = fma(n.decay, p, d);
  const T squares = fma(d, d, sum);
  sum = squares;
  p = p + n.rate * d / (sqrt(squares) + n.eps);
}

}  // namespace accrue::kernels::scalar
