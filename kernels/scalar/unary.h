// The formulas of unary_ops.def: value and derivative of elementwise functions of one operand.
//
// Each struct has forward(x), backward(x, y, dy) = dy * d(forward)/dx with y = forward(x), and says
// which of x and y backward reads. Both take the parameters `p` last if the function has any. T is
// float or double.
#pragma once

#include "accrue/core/host_device.h"
#include "accrue/kernels/scalar/exp.h"
#include "accrue/kernels/scalar/gelu.h"
#include "accrue/kernels/scalar/log.h"
#include "accrue/kernels/scalar/pow.h"
#include "accrue/kernels/scalar/round.h"
#include "accrue/kernels/scalar/sigmoid.h"
#include "accrue/kernels/scalar/tanh.h"

namespace accrue::kernels::scalar {

/// The numbers of UnaryParameters, rounded to T.
template <class T>
struct Parameters {
  T first, second;
};

/// Formula::forward, with or without parameters.
template <class Formula, class T>
ACCRUE_HD T forward(T x, [[maybe_unused]] Parameters<T> p) {
  if constexpr (requires { Formula::forward(x, p); }) {
    return Formula::forward(x, p);
  } else {
    return Formula::forward(x);
  }
}

/// Formula::backward, with or without parameters.
template <class Formula, class T>
ACCRUE_HD T backward(T x, T y, T dy, [[maybe_unused]] Parameters<T> p) {
  if constexpr (requires { Formula::backward(x, y, dy, p); }) {
    return Formula::backward(x, y, dy, p);
  } else {
    return Formula::backward(x, y, dy);
  }
}

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

/// x, or slope * x below 0; slope = p.first. The gradient is dy where x > 0, slope * dy elsewhere,
/// at 0 and at NaN too.
struct LeakyRelu {
  static constexpr bool kReadsX = true, kReadsY = false;
  template <class T>
  static ACCRUE_HD T forward(T x, Parameters<T> p) {
    return x < T(0) ? p.first * x : x;
  }
  template <class T>
  static ACCRUE_HD T backward(T x, T, T dy, Parameters<T> p) {
    return x > T(0) ? dy : p.first * dy;
  }
};

struct Tanh {
  static constexpr bool kReadsX = false, kReadsY = true;
  template <class T>
  static ACCRUE_HD T forward(T x) {
    return tanh(x);
  }
  template <class T>
  static ACCRUE_HD T backward(T, T y, T dy) {
    return dy * fma(-y, y, T(1));
  }
};

struct Sigmoid {
  static constexpr bool kReadsX = false, kReadsY = true;
  template <class T>
  static ACCRUE_HD T forward(T x) {
    return sigmoid(x);
  }
  template <class T>
  static ACCRUE_HD T backward(T, T y, T dy) {
    return dy * ((T(1) - y) * y);
  }
};

struct Silu {
  static constexpr bool kReadsX = true, kReadsY = false;
  template <class T>
  static ACCRUE_HD T forward(T x) {
    return silu(x);
  }
  template <class T>
  static ACCRUE_HD T backward(T x, T, T dy) {
    return dy * silu_slope(x);
  }
};

struct Gelu {
  static constexpr bool kReadsX = true, kReadsY = false;
  template <class T>
  static ACCRUE_HD T forward(T x) {
    return gelu(x);
  }
  template <class T>
  static ACCRUE_HD T backward(T x, T, T dy) {
    return dy * gelu_slope(x);
  }
};

struct GeluTanh {
  static constexpr bool kReadsX = true, kReadsY = false;
  template <class T>
  static ACCRUE_HD T forward(T x) {
    return gelu_tanh(x);
  }
  template <class T>
  static ACCRUE_HD T backward(T x, T, T dy) {
    return dy * gelu_tanh_slope(x);
  }
};

/// Rounded correctly. sqrt(-0) = -0, NaN below; the gradient at 0 is infinite.
struct Sqrt {
  static constexpr bool kReadsX = false, kReadsY = true;
  static ACCRUE_HD float forward(float x) { return __builtin_sqrtf(x); }
  static ACCRUE_HD double forward(double x) { return __builtin_sqrt(x); }
  template <class T>
  static ACCRUE_HD T backward(T, T y, T dy) {
    return dy / (y + y);
  }
};

/// The gradient is +0 at 0 and at NaN.
struct Abs {
  static constexpr bool kReadsX = true, kReadsY = false;
  template <class T>
  static ACCRUE_HD T forward(T x) {
    return x < T(0) ? -x : x + T(0);
  }
  template <class T>
  static ACCRUE_HD T backward(T x, T, T dy) {
    return x > T(0) ? dy : (x < T(0) ? -dy : T(0));
  }
};

/// x within [p.first, p.second]; NaN stays NaN. The gradient is dy within, also at both ends, and
/// +0 outside and at NaN.
struct Clamp {
  static constexpr bool kReadsX = true, kReadsY = false;
  template <class T>
  static ACCRUE_HD T forward(T x, Parameters<T> p) {
    const T y = x < p.first ? p.first : x;
    return y > p.second ? p.second : y;
  }
  template <class T>
  static ACCRUE_HD T backward(T x, T, T dy, Parameters<T> p) {
    return ((x >= p.first) & (x <= p.second)) ? dy : T(0);
  }
};

/// x^p.first. The gradient is dy * (p.first * x^(p.first - 1)), and +0 for x^0.
struct Pow {
  static constexpr bool kReadsX = true, kReadsY = false;
  template <class T>
  static ACCRUE_HD T forward(T x, Parameters<T> p) {
    return pow(x, p.first);
  }
  template <class T>
  static ACCRUE_HD T backward(T x, T, T dy, Parameters<T> p) {
    return p.first == T(0) ? T(0) : dy * (p.first * pow(x, p.first - T(1)));
  }
};

/// The nearest bfloat16. The gradient is dy rounded likewise, as through a tensor of that type.
struct RoundToBFloat16 {
  static constexpr bool kReadsX = false, kReadsY = false;
  template <class T>
  static ACCRUE_HD T forward(T x) {
    return round_to_bfloat16(x);
  }
  template <class T>
  static ACCRUE_HD T backward(T, T, T dy) {
    return round_to_bfloat16(dy);
  }
};

/// The nearest float16, otherwise as RoundToBFloat16.
struct RoundToFloat16 {
  static constexpr bool kReadsX = false, kReadsY = false;
  template <class T>
  static ACCRUE_HD T forward(T x) {
    return round_to_float16(x);
  }
  template <class T>
  static ACCRUE_HD T backward(T, T, T dy) {
    return round_to_float16(dy);
  }
};

}  // namespace accrue::kernels::scalar
