// SampleAxis: which dimension of a tensor counts the samples of a batch.
#pragma once

#include <cstdint>

namespace accrue {

/// What a tensor from a loader knows about its samples, and what views keep of it. Sample s owns
/// entries [s * rows, (s + 1) * rows) of dimension `dim`. Not known: dim == -1.
struct SampleAxis {
  int dim = -1;
  std::int64_t rows = 1;  ///< entries of `dim` per sample

  bool known() const { return dim >= 0; }
  /// True when flattening the leading dimensions keeps the rows of a sample together and in order.
  bool is_major() const { return dim == 0; }
  bool operator==(const SampleAxis&) const = default;
};

}  // namespace accrue
