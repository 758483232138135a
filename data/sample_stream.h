// SampleStream: samples one after the other, for data sets whose size nobody knows.
#pragma once

#include "accrue/data/dataset.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace accrue::data {

/// One walk over samples.
class SampleStream {
 public:
  virtual ~SampleStream() = default;
  /// The next sample; none at the end.
  virtual std::optional<Sample> next() = 0;
};

/// A data set that can only be walked: torch's IterableDataset.
/// Threads: open() is called from several threads at once when several ranks share a data set.
class IterableDataset {
 public:
  virtual ~IterableDataset() = default;
  /// The samples of an epoch from the first on, the same on every rank. Walks are independent.
  virtual std::unique_ptr<SampleStream> open(std::int64_t epoch) const = 0;
};

}  // namespace accrue::data
