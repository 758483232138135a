#include "accrue/data/tensor_dataset.h"

#include "accrue/core/error.h"

#include <utility>

namespace accrue::data {

TensorDataset::TensorDataset(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  ACCRUE_CHECK(!tensors_.empty(),
               ValueError,
               "tensor_dataset",
               "at least one tensor must be given, got none");
  const Tensor& first = tensors_.front();
  for (const Tensor& tensor : tensors_) {
    ACCRUE_CHECK(tensor.rank() > 0,
                 ShapeError,
                 "tensor_dataset",
                 "the first dimension must count the samples, got a scalar; unsqueeze(0) it");
    ACCRUE_CHECK(tensor.size(0) == first.size(0),
                 ShapeError,
                 "tensor_dataset",
                 "tensors must hold equally many samples, got shapes ",
                 first.shape(),
                 " and ",
                 tensor.shape());
  }
}

Sample TensorDataset::get(std::int64_t index) const {
  ACCRUE_CHECK(index >= 0 && index < size(),
               IndexError,
               "tensor_dataset",
               "index must lie in [0, ",
               size(),
               "), got ",
               index);
  Sample sample;
  sample.index = index;
  sample.fields.reserve(tensors_.size());
  for (const Tensor& tensor : tensors_) sample.fields.push_back(tensor.select(0, index));
  return sample;
}

}  // namespace accrue::data
