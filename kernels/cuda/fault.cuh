// How kernels note a Fault.
#pragma once

#include "accrue/kernels/cuda/fault.h"
#include "accrue/kernels/cuda/platform.h"

namespace accrue::kernels::cuda {

ACCRUE_DEVICE void note_fault(int* word, Fault fault) {
  if (word != nullptr) atomic_max(word, static_cast<int>(fault));
}

}  // namespace accrue::kernels::cuda
