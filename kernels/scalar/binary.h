// The formulas of elementwise functions of two and three operands. T is float or double.
#pragma once

#include "accrue/core/host_device.h"
#include "accrue/kernels/scalar/float_ops.h"

namespace accrue::kernels::scalar {

struct Add {
  template <class T>
  static ACCRUE_HD T apply(T a, T b) {
    return a + b;
  }
};
struct Sub {
  template <class T>
  static ACCRUE_HD T apply(T a, T b) {
    return a - b;
  }
};
struct Mul {
  template <class T>
  static ACCRUE_HD T apply(T a, T b) {
    return a * b;
  }
};
struct Div {
  template <class T>
  static ACCRUE_HD T apply(T a, T b) {
    return a / b;
  }
};
struct Maximum {
  template <class T>
  static ACCRUE_HD T apply(T a, T b) {
    const T larger = a < b ? b : a;  // a if it is NaN
    return b != b ? b : larger;
  }
};
struct Minimum {
  template <class T>
  static ACCRUE_HD T apply(T a, T b) {
    const T smaller = b < a ? b : a;
    return b != b ? b : smaller;
  }
};
struct LargerGradient {
  template <class T>
  static ACCRUE_HD T apply(T dy, T a, T b) {
    const T share = a == b ? dy * T(0.5) : dy;
    return a < b ? T(0) : share;
  }
};
struct FusedMultiplyAdd {
  template <class T>
  static ACCRUE_HD T apply(T a, T b, T c) {
    return fma(a, b, c);
  }
};

}  // namespace accrue::kernels::scalar
