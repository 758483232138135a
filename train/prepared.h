// What prepare() and accumulate() return: wrappers that act only when a window has ended.
#pragma once

#include "accrue/autograd/autocast.h"
#include "accrue/autograd/window.h"
#include "accrue/data/window_plan.h"
#include "accrue/optim/optimizer.h"
#include "accrue/optim/schedule.h"

#include <optional>

namespace accrue::train {

class Accelerator;

/// The open micro-batch, with the autocast of mixed precision; closes at the end of the C++ scope.
class AccumulateScope {
 public:
  /// `is_open` is true meanwhile. `window`: where the positions lie; null without a plan.
  AccumulateScope(bool& is_open, std::optional<DType> half, Window* window, data::Range positions)
      : is_open_(is_open) {
    if (window) micro_batch_.emplace(*window, positions.begin, positions.end);
    if (half) autocast_.emplace(*half);
    is_open_ = true;
  }
  AccumulateScope(const AccumulateScope&) = delete;
  AccumulateScope& operator=(const AccumulateScope&) = delete;
  ~AccumulateScope() { is_open_ = false; }

 private:
  bool& is_open_;
  std::optional<MicroBatch> micro_batch_;
  std::optional<Autocast> autocast_;
};

/// An optimizer whose step() acts at window ends only and whose zero_grad() never drops a part of a
/// window, so it may stand before backward() or after step().
class PreparedOptimizer {
 public:
  PreparedOptimizer(Accelerator& accelerator, optim::Optimizer& optimizer, int number)
      : accelerator_(&accelerator), optimizer_(&optimizer), number_(number) {}

  /// Steps if the window ended and had a weight, and in fp16 no gradient overflowed. Errors: of the
  /// optimizer.
  void step();
  /// Drops the gradients of a window that ended, and always what a failed backward pass left.
  void zero_grad();
  bool step_was_skipped() const;
  optim::Optimizer& optimizer() const { return *optimizer_; }

 private:
  Accelerator* accelerator_;
  optim::Optimizer* optimizer_;
  int number_;  ///< of the accelerator's
};

/// A schedule that advances once per optimizer step, not where that is skipped; with Compat as
/// upstream, once per rank unless the ranks split batches, but not beyond its end.
class PreparedScheduler {
 public:
  PreparedScheduler(Accelerator& accelerator, optim::Schedule& scheduler)
      : accelerator_(&accelerator), scheduler_(&scheduler) {}

  void step();
  optim::Schedule& scheduler() const { return *scheduler_; }

 private:
  Accelerator* accelerator_;
  optim::Schedule* scheduler_;
};

}  // namespace accrue::train
