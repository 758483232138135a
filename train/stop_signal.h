// StopSignal: SIGTERM and SIGINT end training after the same step on all ranks.
#pragma once

#include "accrue/train/process_state.h"

namespace accrue::train {

/// Catches SIGTERM and SIGINT of this process as long as it lives; nothing else in the library
/// does. Ask it where a window ends:
///
///   if (accelerator.sync_gradients() && stop.has_come(accelerator)) break;
///
/// A signal that comes a second or more after the first acts as if this did not exist, which by
/// default ends the process. Earlier ones are the same: schedulers signal a process and its group.
///
/// Errors:  StateError when there is one already.
/// Threads: any thread may ask; ranks that are threads share one.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// Collective: whether a signal has come to any rank. The answer is the same on all ranks.
  bool has_come(const ProcessState& ranks) const;
  /// Whether one has come to this process.
  bool has_come_here() const noexcept;
};

}  // namespace accrue::train
