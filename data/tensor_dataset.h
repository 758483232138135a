// TensorDataset: tensors whose first dimension counts the samples.
#pragma once

#include "accrue/data/dataset.h"

#include <cstdint>
#include <vector>

namespace accrue::data {

/// Sample i holds tensor[i] of every tensor, as views. Holds a share of the tensors' storage.
class TensorDataset : public Dataset {
 public:
  /// Errors: ValueError for no tensors; ShapeError for a scalar or unequal first dimensions.
  explicit TensorDataset(std::vector<Tensor> tensors);

  /// 0 for a moved-from one.
  std::int64_t size() const override { return tensors_.empty() ? 0 : tensors_.front().size(0); }
  /// Errors: IndexError outside [0, size()).
  Sample get(std::int64_t index) const override;

  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
};

}  // namespace accrue::data
