#include "accrue/train/evaluation.h"

#include "accrue/dist/sum_nodes.h"
#include "accrue/train/training_window.h"

#include <utility>

namespace accrue::train {

void Evaluation::add(const Loss& loss) {
  const LoaderPass* pass = accelerator_->top();
  ACCRUE_CHECK(
      pass && !pass->source,
      StateError,
      "evaluation",
      "a loader of prepare() with a window plan must be iterated, got none; for upstream's "
      "dealing use gather_for_metrics()");
  ACCRUE_CHECK(pass->index == next_step_,
               StateError,
               "evaluation",
               "every batch must be added once, got ",
               text("micro-batch ", pass->index, " after ", next_step_, " of the pass"));
  const data::MicroStep& step = pass->step;
  if (is_complete_) {
    window_.begin(pass->span(pass->plan.window(step.window).size()));
    rows_.drop();
    window_weight_ = LossWeight();
  }
  {
    const MicroBatch batch(window_, step.positions.begin, step.positions.end);
    const Tensor& rows = loss.rows().value();
    rows_.add(batch, rows, rows_per_sample(rows, batch, "evaluation"));
  }
  window_weight_.add(loss.weight());
  is_complete_ = step.ends_window;
  next_step_ = pass->is_last() ? 0 : next_step_ + 1;
  pass_ = pass;
  if (is_complete_) finish_window(*pass);
}

void Evaluation::finish_window(const LoaderPass& pass) {
  window_.drop();
  dtype_ = rows_.dtype();
  if (accelerator_->num_processes() == 1) {
    sum_ += rows_.finish();
    return weight_.add(window_weight_);
  }
  dist::ProcessGroup& group = accelerator_->process_group();
  LossWeight all;
  for (const std::string& theirs : group.all_gather_bytes(window_weight_.bytes()))
    all.add(LossWeight::from_bytes(theirs));
  weight_.add(all);
  Tensor sum = Tensor::empty({1}, dtype_);
  dist::sum_nodes(group, pass.plan.lanes().count, rows_.close(), sum);
  sum_ += visit_floating(dtype_, "evaluation", [&]<class T>(T) -> double { return sum.item<T>(); });
}

void Evaluation::check_complete() const {
  ACCRUE_CHECK(is_complete_,
               StateError,
               "evaluation",
               "the last window must be complete, got a part of one; add every batch of a pass");
  ACCRUE_CHECK(next_step_ == 0 || accelerator_->top() == pass_,
               StateError,
               "evaluation",
               "a pass that has ended must be added whole, got its first ",
               next_step_,
               " micro-batches; for a part of the data prepare a loader of that part");
}

double Evaluation::sum() const {
  check_complete();
  return sum_;
}

double Evaluation::weight() const {
  check_complete();
  return weight_.value();
}

double Evaluation::mean() const { return mean_of(sum(), weight(), dtype_); }

}  // namespace accrue::train
