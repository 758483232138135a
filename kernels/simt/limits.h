// The limits of a launch, and how places are written in messages.
#pragma once

#include "accrue/kernels/simt/simt.h"

#include <cstring>
#include <ostream>

namespace accrue::simt {

/// Refuses what CUDA refuses.
///
/// Errors:  KernelFault with CUDA's name for the error.
void check_launch(const LaunchShape& shape);

/// The index of element `number`, x fastest.
inline Dim3 unflatten(std::int64_t number, Dim3 sizes) {
  const std::int64_t x = sizes.x, y = sizes.y;
  return {static_cast<unsigned>(number % x),
          static_cast<unsigned>(number / x % y),
          static_cast<unsigned>(number / x / y)};
}

inline bool is_same(Site a, Site b) {
  if (a.line() != b.line() || a.column() != b.column()) return false;
  return a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0;
}

inline std::ostream& operator<<(std::ostream& out, Dim3 index) {
  return out << '(' << index.x << ", " << index.y << ", " << index.z << ')';
}

/// "linear.cu:120".
inline std::string place(Site site) {
  const char* const slash = std::strrchr(site.file_name(), '/');
  return text(slash ? slash + 1 : site.file_name(), ':', site.line());
}

}  // namespace accrue::simt
