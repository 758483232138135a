// Fault: what a kernel finds wrong with its operands and cannot throw, for the host to throw.
#pragma once

#include "accrue/core/error.h"

namespace accrue::kernels::cuda {

/// The number that a kernel leaves in Stream::fault; of several the largest.
enum class Fault : int { none, target, table_row, position };

/// Throws what Stream::fault says, if anything.
///
/// Errors:  IndexError.
inline void throw_fault(int noted) {
  constexpr const char* kAdvice =
      "; results since are not valid. The same call on the CPU names the place";
  ACCRUE_CHECK(noted != static_cast<int>(Fault::target),
               IndexError,
               "cross_entropy",
               "targets must be classes or ignore_index, got another on CUDA",
               kAdvice);
  ACCRUE_CHECK(noted != static_cast<int>(Fault::table_row),
               IndexError,
               "embedding",
               "indices must be rows of the table, got another on CUDA",
               kAdvice);
  ACCRUE_CHECK(noted != static_cast<int>(Fault::position),
               IndexError,
               "gather",
               "indices, also of index_select, must lie in their dimension, got another on CUDA",
               kAdvice);
}

}  // namespace accrue::kernels::cuda
