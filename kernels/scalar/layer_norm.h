// One row of layer and RMS normalisation, with the roundings that kernels/layer_norm.h lists.
#pragma once

#include "accrue/core/host_device.h"
#include "accrue/kernels/layer_norm.h"
#include "accrue/kernels/scalar/float_ops.h"

#include <cstdint>

namespace accrue::kernels::scalar {

/// A row of x; mean is 0 for rms.
template <class T>
struct NormRow {
  const T* x = nullptr;
  T mean = 0, rstd = 0;

  ACCRUE_HD T n(std::int64_t c) const { return (x[c] - mean) * rstd; }

  // ---- forward ----

  /// One step of the sum of squares; for rms x - 0 is x.
  ACCRUE_HD T add_square(T acc, std::int64_t c) const {
    const T d = x[c] - mean;
    return fma(d, d, acc);
  }
  static ACCRUE_HD T rstd_of(T squares, T count, T eps) {
    return T(1) / sqrt(squares / count + eps);
  }
  /// y; w and b may be null.
  ACCRUE_HD T output(std::int64_t c, const T* w, const T* b) const {
    if (w == nullptr) return n(c);
    if (b == nullptr) return n(c) * w[c];
    return fma(n(c), w[c], b[c]);
  }
};

/// A row of x and of dy; w may be null.
template <class T>
struct NormGradRow : NormRow<T> {
  const T *dy = nullptr, *w = nullptr;

  ACCRUE_HD T g(std::int64_t c) const { return w == nullptr ? dy[c] : dy[c] * w[c]; }
  /// One step of the sum behind k.
  ACCRUE_HD T add_product(T acc, std::int64_t c) const { return fma(g(c), this->n(c), acc); }
  /// dx; `offset`, the mean of g, is not used for rms.
  ACCRUE_HD T dx(NormKind kind, std::int64_t c, T k, T offset) const {
    const T from = kind == NormKind::rms ? g(c) : g(c) - offset;
    return this->rstd * fma(-this->n(c), k, from);
  }
};

}  // namespace accrue::kernels::scalar
