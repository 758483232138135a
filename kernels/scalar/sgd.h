// The SGD step of one element, with the roundings that kernels/sgd.h lists.
#pragma once

#include "accrue/core/host_device.h"
#include "accrue/kernels/scalar/float_ops.h"
#include "accrue/kernels/sgd.h"

namespace accrue::kernels::scalar {

enum class SgdMomentum : unsigned char { none, first, later };

/// The numbers of a step, rounded to T.
template <class T>
struct SgdNumbers {
  T decay, momentum, kept, rate, sign;
  bool nesterov;

  explicit SgdNumbers(const SgdStep<T>& step)
      : decay(static_cast<T>(step.weight_decay)),
        momentum(static_cast<T>(step.momentum)),
        kept(static_cast<T>(1.0 - step.dampening)),
        rate(static_cast<T>(-step.lr)),
        sign(step.maximize ? T(-1) : T(1)),
        nesterov(step.nesterov) {}
};

inline SgdMomentum momentum_of(double momentum, bool first_step) {
  if (momentum == 0) return SgdMomentum::none;
  return first_step ? SgdMomentum::first : SgdMomentum::later;
}

/// Moves p; `buffer` is not used without momentum.
template <class T>
ACCRUE_HD void sgd_element(
    const SgdNumbers<T>& n, SgdMomentum momentum, bool decays, T& p, T g, T* buffer) {
  T d = n.sign * g;
  if (decays) d = fma(n.decay, p, d);
  if (momentum != SgdMomentum::none) {
    const T b = momentum == SgdMomentum::first ? d : fma(n.kept, d, *buffer * n.momentum);
    *buffer = b;
    d = n.nesterov ? fma(n.momentum, b, d) : b;
  }
  p = fma(n.rate, d, p);
}

}  // namespace accrue::kernels::scalar
