// The linear layer and its gradients by plain loops.
#pragma once

#include "accrue/tests/support/array.h"

#include <algorithm>
#include <cmath>

namespace accrue::test {

/// c[m,n] = one chain over k of a(m, k) * b(k, n).
template <class A, class B>
Array matrix_product(
    std::int64_t rows, std::int64_t terms, std::int64_t columns, const A& a, const B& b) {
  Array c = zeros({rows, columns});
  for (std::int64_t m = 0; m < rows; ++m) {
    for (std::int64_t n = 0; n < columns; ++n) {
      for (std::int64_t k = 0; k < terms; ++k) {
        c[m * columns + n] = std::fma(a(m, k), b(k, n), c[m * columns + n]);
      }
    }
  }
  return c;
}

/// x, w and a bias or none.
inline Array linear_value(const Arrays& x) {
  const std::int64_t outputs = x[1].shape[0], inputs = x[1].shape[1];
  Shape shape = x[0].shape;
  shape[shape.rank() - 1] = outputs;
  const auto at = [&](std::int64_t n, std::int64_t i) { return x[0][n * inputs + i]; };
  const auto weight = [&](std::int64_t i, std::int64_t o) { return x[1][o * inputs + i]; };
  Array y = matrix_product(
      numel(shape) / std::max<std::int64_t>(outputs, 1), inputs, outputs, at, weight);
  y.shape = shape;
  for (std::int64_t i = 0; i < y.numel() && x.size() > 2; ++i) y[i] += x[2][i % outputs];
  return y;
}

/// Chains over rows of dy that are not all zero.
inline Arrays linear_gradients(const Arrays& x, const Array&, const Array& dy) {
  const std::int64_t outputs = x[1].shape[0], inputs = x[1].shape[1];
  const std::int64_t rows = dy.numel() / std::max<std::int64_t>(outputs, 1);
  const auto gradient = [&](std::int64_t n, std::int64_t o) { return dy[n * outputs + o]; };
  const auto weight = [&](std::int64_t o, std::int64_t i) { return x[1][o * inputs + i]; };
  Array dx = matrix_product(
      x[0].numel() / std::max<std::int64_t>(inputs, 1), outputs, inputs, gradient, weight);
  dx.shape = x[0].shape;
  Arrays gradients = {dx, zeros(x[1].shape), zeros({outputs})};
  for (std::int64_t n = 0; n < rows; ++n) {
    bool is_zero = true;
    for (std::int64_t o = 0; o < outputs; ++o) is_zero &= gradient(n, o) == 0;
    if (is_zero) continue;
    for (std::int64_t o = 0; o < outputs; ++o) {
      for (std::int64_t i = 0; i < inputs; ++i) {
        float& element = gradients[1][o * inputs + i];
        element = std::fma(gradient(n, o), x[0][n * inputs + i], element);
      }
      gradients[2][o] += gradient(n, o);
    }
  }
  gradients.resize(x.size());
  return gradients;
}

}  // namespace accrue::test
