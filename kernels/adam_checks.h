// What the arguments of an Adam step must fulfil on every device.
#pragma once

#include "accrue/core/error.h"
#include "accrue/kernels/adam.h"

namespace accrue::kernels {

template <class T>
void check_arguments(const AdamStep<T>& args) {
  ACCRUE_CHECK(args.step >= 1,
               ValueError,
               AdamStep<T>::kName,
               "step must be >= 1, got ",
               args.step,
               "; count from 1");
}

}  // namespace accrue::kernels
