// WindowSum: a sum of row values over a window, reduced as a parameter gradient is (contract 14).
#pragma once

#include "accrue/autograd/window.h"

#include <optional>

namespace accrue {

/// The sum of row losses of one window: lanes, then the aligned tree. Its bits do not depend on how
/// the window was split.
class WindowSum {
 public:
  /// Adds the rows [R] of the micro-batch, in sample-major order. Errors: DTypeError.
  void add(const MicroBatch& batch, const Tensor& rows, std::int64_t rows_per_sample);
  /// The sum; 0 when nothing was added. The next add() starts a new window.
  double finish();
  /// The nodes of this rank, on the CPU, where several share the window. The next add() starts a
  /// new one.
  std::vector<TreeNode> close();
  /// Of the rows.
  DType dtype() const { return like_.defined() ? like_.dtype() : DType::float32; }
  /// Forgets what was added.
  void drop() { lanes_.reset(); }

 private:
  std::optional<LaneAccumulator> lanes_;
  Tensor like_;  ///< one element of the rows' dtype
};

}  // namespace accrue
