// What the arguments of an SGD step must fulfil on every device.
#pragma once

#include "accrue/core/error.h"
#include "accrue/kernels/sgd.h"

namespace accrue::kernels {

template <class T>
void check_arguments(const SgdStep<T>& args) {
  ACCRUE_CHECK(args.momentum == 0 || args.buffer != nullptr || args.count == 0,
               ValueError,
               SgdStep<T>::kName,
               "momentum needs a buffer, got null with momentum ",
               args.momentum,
               "; pass one of the parameter's size");
}

}  // namespace accrue::kernels
