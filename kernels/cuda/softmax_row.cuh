// Softmax of one row by a team, in the operations that kernels/softmax.h lists.
#pragma once

#include "accrue/kernels/cuda/platform.h"
#include "accrue/kernels/scalar/exp.h"

namespace accrue::kernels::cuda {

struct SoftmaxRow {
  float max, sum;

  ACCRUE_DEVICE float weight(float x) const { return scalar::exp(x - max) / sum; }
};

/// Of n elements x(c); all threads get it.
template <class Team, class Load>
ACCRUE_DEVICE SoftmaxRow softmax_row(Team& team, std::int64_t n, Load x) {
  const float max = team.max(n, x);
  return {max, team.sum(n, [=](std::int64_t c) { return scalar::exp(x(c) - max); })};
}

/// The sum k that the gradient y * (dy - k) needs.
template <class Team>
ACCRUE_DEVICE float softmax_product(Team& team, std::int64_t n, const float* y, const float* dy) {
  return team.accumulate(n,
                         [=](float acc, std::int64_t c) { return scalar::fma(dy[c], y[c], acc); });
}

}  // namespace accrue::kernels::cuda
