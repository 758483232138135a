// BatchSource: the batches of one pass on one rank, one after the other.
#pragma once

#include "accrue/data/data_loader.h"

#include <cstdint>
#include <optional>

namespace accrue::data {

struct DealtBatch {
  Batch batch;
  bool is_last = false;
  /// With the last batch: how many samples of all ranks' batches are no duplicates; else 0.
  std::int64_t remainder = 0;
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// None at the end, where the loader's epoch advances.
  virtual std::optional<DealtBatch> next() = 0;
};

}  // namespace accrue::data
