// Loss: row losses and their weight, so that the mean over a window is divided once.
#pragma once

#include "accrue/autograd/variable.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace accrue {

/// What a sum of losses is divided by: a count (elements, or targets that are not ignored), or with
/// class weights the counts per class times the weights. Counts are integers, so the weight of a
/// window does not depend on how it was split (contract 7).
class LossWeight {
 public:
  LossWeight() = default;
  /// Errors: ValueError for a negative count.
  explicit LossWeight(std::int64_t count);
  /// `counts[c]` targets of class c, each of weight `weights[c]`.
  /// Errors: ShapeError when the sizes differ, ValueError for a negative count or a weight that is
  /// not finite.
  LossWeight(std::vector<std::int64_t> counts, std::vector<double> weights);

  /// The count, or the sum of count * weight in class order, in double.
  double value() const;
  /// Errors: StateError when the class weights differ.
  void add(const LossWeight& other);
  bool operator==(const LossWeight&) const = default;

  std::int64_t count() const { return count_; }
  /// Empty without class weights.
  const std::vector<std::int64_t>& class_counts() const { return class_counts_; }
  const std::vector<double>& class_weights() const { return class_weights_; }

  /// How ranks tell each other a weight.
  std::string bytes() const;
  /// Of what bytes() returned.
  static LossWeight from_bytes(std::string_view bytes);

 private:
  std::int64_t count_ = 0;
  std::vector<std::int64_t> class_counts_;
  std::vector<double> class_weights_;
};

/// sum / weight, divided in `dtype`; NaN without sign for weight 0.
double mean_of(double sum, double weight, DType dtype);

/// The loss of a micro-batch: differentiable row losses, not reduced, and the weight of their sum.
///
/// Accelerator::backward reduces the rows like a gradient (lanes, tree, one division per window).
/// In plain autograd use sum(), for example `(loss.sum() / loss.weight().value()).backward()`.
class Loss {
 public:
  Loss() = default;
  /// `rows` [...] are sample-major row losses (flattened here), `weight` what their sum is divided
  /// by. Errors: ShapeError for rank 0.
  static Loss from_rows(const Variable& rows, LossWeight weight);
  static Loss from_rows(const Variable& rows, std::int64_t weight) {
    return from_rows(rows, LossWeight(weight));
  }

  const Variable& rows() const { return rows_; }
  const LossWeight& weight() const { return weight_; }
  /// The sum of the rows in the order of core/sum_order.h, differentiable.
  Variable sum() const;
  /// sum / weight, the number to print; NaN for weight 0.
  double mean() const;

 private:
  Variable rows_;
  LossWeight weight_;
};

/// Row by row. Errors: ShapeError when the number of rows differs, StateError when weights differ.
Loss operator+(const Loss& a, const Loss& b);
Loss operator*(double factor, const Loss& loss);

}  // namespace accrue
