#include "accrue/autograd/loss.h"

#include "accrue/autograd/ops/binary.h"
#include "accrue/autograd/ops/reduce.h"
#include "accrue/autograd/ops/views.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

namespace accrue {

LossWeight::LossWeight(std::int64_t count) : count_(count) {
  ACCRUE_CHECK(count >= 0, ValueError, "loss", "weight must be >= 0, got ", count);
}

LossWeight::LossWeight(std::vector<std::int64_t> counts, std::vector<double> weights)
    : class_counts_(std::move(counts)), class_weights_(std::move(weights)) {
  ACCRUE_CHECK(class_counts_.size() == class_weights_.size(),
               ShapeError,
               "loss",
               "each class must have a count and a weight, got ",
               class_counts_.size(),
               " counts and ",
               class_weights_.size(),
               " weights");
  for (std::size_t c = 0; c < class_counts_.size(); ++c) {
    ACCRUE_CHECK(
        class_counts_[c] >= 0, ValueError, "loss", "counts must be >= 0, got ", class_counts_[c]);
    ACCRUE_CHECK(std::isfinite(class_weights_[c]),
                 ValueError,
                 "loss",
                 "class weights must be finite, got ",
                 class_weights_[c],
                 " for class ",
                 c);
  }
}

double LossWeight::value() const {
  double value = static_cast<double>(count_);
  for (std::size_t c = 0; c < class_counts_.size(); ++c) {
    value += static_cast<double>(class_counts_[c]) * class_weights_[c];
  }
  return value;
}

void LossWeight::add(const LossWeight& other) {
  if (*this == LossWeight()) {
    *this = other;
    return;
  }
  if (other == LossWeight()) return;
  ACCRUE_CHECK(class_weights_ == other.class_weights_,
               StateError,
               "loss",
               "losses of one window must have the same class weights, got two sets");
  count_ += other.count_;
  for (std::size_t c = 0; c < class_counts_.size(); ++c) class_counts_[c] += other.class_counts_[c];
}

std::string LossWeight::bytes() const {
  std::vector<std::int64_t> numbers = {count_, std::ssize(class_counts_)};
  for (const std::int64_t count : class_counts_) numbers.push_back(count);
  for (const double w : class_weights_) numbers.push_back(std::bit_cast<std::int64_t>(w));
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(std::int64_t)};
}

LossWeight LossWeight::from_bytes(std::string_view bytes) {
  std::vector<std::int64_t> numbers(bytes.size() / sizeof(std::int64_t));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  const auto num_classes = numbers.at(1);
  if (num_classes == 0) return LossWeight(numbers[0]);
  const auto counts = numbers.begin() + 2, weights = counts + num_classes;
  std::vector<double> class_weights;
  for (auto w = weights; w != numbers.end(); ++w)
    class_weights.push_back(std::bit_cast<double>(*w));
  return LossWeight({counts, weights}, std::move(class_weights));
}

double mean_of(double sum, double weight, DType dtype) {
  const double mean =
      dtype == DType::float64 ? sum / weight : static_cast<float>(sum) / static_cast<float>(weight);
  return weight == 0 || std::isnan(mean) ? std::numeric_limits<double>::quiet_NaN() : mean;
}

Loss Loss::from_rows(const Variable& rows, LossWeight weight) {
  ACCRUE_CHECK(rows.rank() >= 1,
               ShapeError,
               "loss",
               "row losses must have a dimension, got a scalar; do not sum over samples");
  Loss loss;
  loss.rows_ = rows.rank() == 1 ? rows : flatten(rows);
  loss.weight_ = std::move(weight);
  return loss;
}

Variable Loss::sum() const { return accrue::sum(rows_); }

double Loss::mean() const {
  const Tensor total = sum_to_shape(rows_.value(), {});
  return visit_floating(total.dtype(), "loss", [&]<class T>(T) {
    return mean_of(total.item<T>(), weight_.value(), total.dtype());
  });
}

Loss operator+(const Loss& a, const Loss& b) {
  ACCRUE_CHECK(a.rows().shape() == b.rows().shape(),
               ShapeError,
               "loss",
               "losses can be added when they have the same rows, got ",
               a.rows().shape(),
               " and ",
               b.rows().shape());
  ACCRUE_CHECK(a.weight() == b.weight(),
               StateError,
               "loss",
               "losses can be added when they have the same weight, got ",
               a.weight().value(),
               " and ",
               b.weight().value(),
               "; scale the rows and use Loss::from_rows");
  return Loss::from_rows(a.rows() + b.rows(), a.weight());
}

Loss operator*(double factor, const Loss& loss) {
  return Loss::from_rows(loss.rows() * factor, loss.weight());
}

}  // namespace accrue
