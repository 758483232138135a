// Cross-entropy and its gradient by plain loops, as kernels/cross_entropy.h states them.
#pragma once

#include "accrue/autograd/ops/losses.h"
#include "accrue/kernels/scalar/exp.h"
#include "accrue/kernels/scalar/log.h"
#include "accrue/tests/support/array.h"
#include "accrue/tests/support/literal_sum.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace accrue::test {

/// The options of a row of operations.
struct CrossEntropy {
  bool has_weights = false;
  double smoothing = 0;
  std::int64_t ignore_index = -100;
  Reduction reduction = Reduction::none;

  /// Class 1 counts for nothing.
  float weight(std::int64_t c) const {
    if (!has_weights) return 1;
    return c == 1 ? 0.0f : 0.5f + 0.75f * static_cast<float>(c);
  }
  CrossEntropyOptions options(const Variable& logits) const {
    CrossEntropyOptions result{.ignore_index = ignore_index, .label_smoothing = smoothing};
    if (!has_weights) return result;
    Array weights = zeros({logits.size(1)});
    for (std::int64_t c = 0; c < weights.numel(); ++c) weights[c] = weight(c);
    result.class_weights = tensor_of(weights).to(logits.dtype()).to(logits.device());
    return result;
  }
};

/// One row as kernels/cross_entropy.h states it.
struct CrossEntropyRow {
  const CrossEntropy& kind;
  const float* x;
  std::int64_t num_classes, target;
  float max = -std::numeric_limits<float>::infinity(), sum = 0;
  float a, b;  ///< a times the target's weight, and the share of smoothing per class

  CrossEntropyRow(const CrossEntropy& k, const float* row, std::int64_t classes, float label)
      : kind(k), x(row), num_classes(classes), target(static_cast<std::int64_t>(label)) {
    for (std::int64_t c = 0; c < classes; ++c) {
      if (x[c] > max || std::isnan(x[c])) max = x[c];
    }
    max += 0;
    sum = literal_sum<float>(classes,
                             [&](std::int64_t c) { return kernels::scalar::exp(x[c] - max); });
    a = target == k.ignore_index ? 0 : static_cast<float>(1 - k.smoothing) * k.weight(target);
    b = static_cast<float>(k.smoothing / static_cast<double>(classes));
  }

  bool counts() const { return target != kind.ignore_index && (a != 0 || b != 0); }
  float nll(std::int64_t c) const { return kernels::scalar::log(sum) - (x[c] - max); }
  float loss() const {
    if (!counts()) return 0;
    const float of_target = a == 0 ? 0 : a * nll(target);
    if (b == 0) return of_target;
    const float smooth = literal_sum<float>(num_classes, [&](std::int64_t c) {
      return kind.weight(c) == 0 ? 0 : kind.weight(c) * nll(c);
    });
    return std::fma(b, smooth, of_target);
  }
  float gradient(std::int64_t c, float dloss) const {
    if (!counts()) return 0;
    const float p = kernels::scalar::exp(x[c] - max) / sum;
    float u = (c == target ? p - 1 : p) * a;
    if (b != 0) {
      const float all =
          literal_sum<float>(num_classes, [&](std::int64_t i) { return kind.weight(i); });
      u = std::fma(b, std::fma(p, all, -kind.weight(c)), u);
    }
    return u * dloss;
  }
};

/// What the sum of the row losses is divided by.
inline float total_weight(const CrossEntropy& kind,
                          const Array& targets,
                          std::int64_t num_classes) {
  double total = 0;
  for (std::int64_t c = 0; c < num_classes; ++c) {
    const auto is_c = [&](float t) { return static_cast<std::int64_t>(t) == c; };
    const auto count = std::count_if(targets.values.begin(), targets.values.end(), is_c);
    if (c != kind.ignore_index) total += static_cast<double>(count) * kind.weight(c);
  }
  return static_cast<float>(total);
}

/// Of logits [N, C] and targets [N].
inline Array cross_entropy_value(const CrossEntropy& kind, const Arrays& x) {
  Array rows = zeros(x[1].shape);
  const std::int64_t classes = x[0].shape[1];
  for (std::int64_t n = 0; n < rows.numel(); ++n) {
    const float* row = x[0].values.data() + n * classes;
    rows[n] = CrossEntropyRow(kind, row, classes, x[1][n]).loss();
  }
  if (kind.reduction == Reduction::none) return rows;
  const float sum = literal_sum<float>(rows.numel(), [&](std::int64_t n) { return rows[n]; });
  const bool is_mean = kind.reduction == Reduction::mean;
  return {{}, {is_mean ? sum / total_weight(kind, x[1], classes) : sum}};
}

/// With respect to the logits.
inline Arrays cross_entropy_gradient(const CrossEntropy& kind, const Arrays& x, const Array& dy) {
  Array dx = x[0];
  const std::int64_t classes = x[0].shape[1];
  for (std::int64_t n = 0; n < x[1].numel(); ++n) {
    float dloss = kind.reduction == Reduction::none ? dy[n] : dy[0];
    if (kind.reduction == Reduction::mean) dloss /= total_weight(kind, x[1], classes);
    const float* row = x[0].values.data() + n * classes;
    const CrossEntropyRow reference(kind, row, classes, x[1][n]);
    for (std::int64_t c = 0; c < classes; ++c) dx[n * classes + c] = reference.gradient(c, dloss);
  }
  return {dx, {}};
}

}  // namespace accrue::test
