// The formulas of unary_ops.def: value and derivative of elementwise functions of one operand.
//
// Each struct has forward(x), backward(x, y, dy) = dy * d(forward)/dx with y = forward(x), and says
// which of x and y backward reads. T is float or double.
#pragma once

#include "accrue/core/host_device.h"
#include "accrue/kernels/scalar/exp.h"
#include "accrue/kernels/scalar/log.h"

namespace accrue::kernels::scalar {

struct Exp {
  static constexpr bool kReadsX = false, kReadsY = true;
  template <class T>
  static ACCRUE_HD T forward(T x) {
    return exp(x);
  }
  template <class T>
  static ACCRUE_HD T backward(T, T y, T dy) {
    return dy * y;
  }
};

struct Log {
  static constexpr bool kReadsX = true, kReadsY = false;
  template <class T>
  static ACCRUE_HD T forward(T x) {
    return log(x);
  }
  template <class T>
  static ACCRUE_HD T backward(T x, T, T dy) {
    return dy / x;
  }
};

struct Neg {
  static constexpr bool kReadsX = false, kReadsY = false;
  template <class T>
  static ACCRUE_HD T forward(T x) {
    return -x;
  }
  template <class T>
  static ACCRUE_HD T backward(T, T, T dy) {
    return -dy;
  }
};

/// max(x, 0) with relu(NaN) = NaN and relu(-0) = -0. The gradient is dy where x > 0 or x is NaN,
/// and +0 elsewhere, at 0 too.
struct Relu {
  static constexpr bool kReadsX = false, kReadsY = true;
  template <class T>
  static ACCRUE_HD T forward(T x) {
    return x < T(0) ? T(0) : x;
  }
  template <class T>
  static ACCRUE_HD T backward(T, T y, T dy) {
    return y <= T(0) ? T(0) : dy;
  }
};

}  // namespace accrue::kernels::scalar
