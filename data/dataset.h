// Dataset: samples by index, the interface that loaders read.
#pragma once

#include "accrue/core/tensor.h"

#include <cstdint>
#include <vector>

namespace accrue::data {

/// One element of a data set: field 0 is the input, field 1 the label, further fields as needed.
struct Sample {
  std::vector<Tensor> fields;
  std::int64_t index = 0;  ///< in the data set; loaders fill it in
};

/// Samples 0 .. size() - 1. The size is fixed while a loader uses the data set.
/// Threads: get() is called from several threads at once when several ranks share a data set.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  /// `index` lies in [0, size()). May throw; the loader's error then names the sample.
  virtual Sample get(std::int64_t index) const = 0;
};

}  // namespace accrue::data
