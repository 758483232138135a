// The comparisons of two elements of one type; `>` and `>=` are `<` and `<=` of swapped operands.
#pragma once

#include "accrue/core/host_device.h"

namespace accrue::kernels::scalar {

struct Equal {
  template <class T>
  static ACCRUE_HD bool apply(T a, T b) {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  static ACCRUE_HD bool apply(T a, T b) {
    return a != b;
  }
};
struct Less {
  template <class T>
  static ACCRUE_HD bool apply(T a, T b) {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  static ACCRUE_HD bool apply(T a, T b) {
    return a <= b;
  }
};

}  // namespace accrue::kernels::scalar
