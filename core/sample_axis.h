// SampleAxis: which dimension of a tensor counts the samples of a batch.
#pragma once

#include <cstdint>

namespace accrue {

/// What a tensor from a loader knows about its samples, and what views keep of it. Sample s owns
/// entries [s * rows, (s + 1) * rows) of dimension `dim`. Not known: dim == -1. Mixed: the values
/// depend on which samples shared a micro-batch, such as a sum over them or the first of them; no
/// gradient may.
struct SampleAxis {
  static constexpr int kMixed = -2;

  int dim = -1;
  std::int64_t rows = 1;  ///< entries of `dim` per sample; -n: n samples of no entries

  static constexpr SampleAxis mixed() { return {kMixed, 1}; }
  bool known() const { return dim >= 0; }
  bool is_mixed() const { return dim == kMixed; }
  /// True when flattening the leading dimensions keeps the rows of a sample together and in order.
  bool is_major() const { return dim == 0; }
  bool operator==(const SampleAxis&) const = default;
};

}  // namespace accrue
