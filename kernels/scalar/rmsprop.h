// The RMSprop step of one element, with the roundings that kernels/rmsprop.h lists.
#pragma once

#include "accrue/core/host_device.h"
#include "accrue/kernels/rmsprop.h"
#include "accrue/kernels/scalar/float_ops.h"

namespace accrue::kernels::scalar {

/// The numbers of a step, rounded to T.
template <class T>
struct RmspropNumbers {
  T sign, decay, kept, taken, eps, momentum, rate;

  explicit ACCRUE_HD RmspropNumbers(const RmspropStep<T>& step)
      : sign(step.maximize ? T(-1) : T(1)),
        decay(static_cast<T>(step.weight_decay)),
        kept(static_cast<T>(step.alpha)),
        taken(static_cast<T>(1.0 - step.alpha)),
        eps(static_cast<T>(step.eps)),
        momentum(static_cast<T>(step.momentum)),
        rate(static_cast<T>(-step.lr)) {}
};

/// Which of a step's parts are there.
struct RmspropParts {
  bool decays, centered, has_buffer;
};

/// Moves p; `average` and `buffer` are used where `parts` says so.
template <class T>
ACCRUE_HD void rmsprop_element(const RmspropNumbers<T>& n,
                               RmspropParts parts,
                               T& p,
                               T g,
                               T& square_average,
                               T* average,
                               T* buffer) {
  T d = n.sign * g;
  if (parts.decays) d = fma(n.decay, p, d);
  T square = fma(n.taken * d, d, square_average * n.kept);
  square_average = square;
  if (parts.centered) {
    const T mean = fma(n.taken, d, *average * n.kept);
    *average = mean;
    square = fma(-mean, mean, square);
    square = square < T(0) ? T(0) : square;
  }
  const T root = sqrt(square) + n.eps;
  if (parts.has_buffer) {
    const T speed = *buffer * n.momentum + d / root;
    *buffer = speed;
    p = fma(n.rate, speed, p);
  } else {
    p = p + n.rate * d / root;
  }
}

}  // namespace accrue::kernels::scalar
