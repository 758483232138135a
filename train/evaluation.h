// Evaluation: a mean over a data set whose bits do not depend on the ranks or the batch size.
#pragma once

#include "accrue/autograd/loss.h"
#include "accrue/autograd/window_sum.h"
#include "accrue/train/accelerator.h"

namespace accrue::train {

/// Sums a loss or a metric over passes of a prepared loader, each sample once:
///
///     train::Evaluation loss(accelerator);
///     const NoGrad no_grad;
///     for (const auto& batch : loader)
///       loss.add(nn::cross_entropy(model(batch.inputs), batch.labels));
///     double mean = loss.mean();
///
/// Order:   a window's rows as those of a training loss: lanes, then the tree (contract 14, 16);
///          windows in order, in double. The bits depend on global_batch_size and lanes alone.
/// Threads: belongs to one thread. Lifetime: borrows the accelerator.
class Evaluation {
 public:
  explicit Evaluation(const Accelerator& accelerator) : accelerator_(&accelerator) {}

  /// Adds the rows of the micro-batch that is iterated now; all ranks add every one, also empty
  /// ones. Collective where a window ends.
  /// Errors: StateError when no loader with a window plan is iterated, a micro-batch was left out
  ///         or comes twice, or accumulate() is open; StateError, DTypeError of the loss; of the
  ///         group.
  void add(const Loss& loss);

  /// Sum and weight of all ranks, in a pass those of its windows so far.
  /// Errors: StateError while a window is not complete, and when the last batches of a pass were
  ///         left out.
  double sum() const;
  double weight() const;
  /// NaN for weight 0. Errors: as sum().
  double mean() const;

 private:
  void check_complete() const;
  void finish_window(const LoaderPass& pass);

  const Accelerator* accelerator_;
  Window window_;
  WindowSum rows_;
  LossWeight window_weight_;          ///< this rank's, of the open window
  std::int64_t next_step_ = 0;        ///< of the pass; 0 between passes
  const LoaderPass* pass_ = nullptr;  ///< the last that was added; only compared
  bool is_complete_ = true;
  LossWeight weight_;
  double sum_ = 0;
  DType dtype_ = DType::float32;
};

}  // namespace accrue::train
