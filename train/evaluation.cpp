#include "accrue/train/evaluation.h"

#include "accrue/dist/sum_nodes.h"

#include <utility>

namespace accrue::train {
namespace {

/// Exact, since counts are integers.
LossWeight sum_over_ranks(dist::ProcessGroup& group, const LossWeight& mine) {
  std::vector<std::int64_t> counts = mine.class_counts();
  counts.push_back(mine.count());
  Tensor all = Tensor::from(counts, {std::ssize(counts)});
  group.all_reduce(all);
  counts = all.to_vector<std::int64_t>();
  if (mine.class_weights().empty()) return LossWeight(counts.back());
  counts.pop_back();
  return {counts, mine.class_weights()};
}

}  // namespace

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
               "every batch must be added once, got micro-batch ",
               pass->index,
               " after ",
               next_step_,
               " of the pass");
  const data::MicroStep& step = pass->step;
  if (is_complete_) {
    window_.begin(pass->span(pass->plan.window(step.window).size()));
    rows_.drop();
    window_weight_ = LossWeight();
  }
  {
    const MicroBatch batch(window_, step.positions.begin, step.positions.end);
    const Tensor& rows = loss.rows().value();
    const std::int64_t rows_each = rows_per_sample(rows, 0, "evaluation", "the loss");
    ACCRUE_CHECK(rows.numel() == batch.size() * rows_each,
                 StateError,
                 "evaluation",
                 "the loss must have rows for the ",
                 batch.size(),
                 " samples of the micro-batch, got ",
                 rows.numel());
    rows_.add(batch, rows, rows_each);
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
  weight_.add(sum_over_ranks(group, window_weight_));
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

double Evaluation::mean() const {
  check_complete();
  return mean_of(sum_, weight_.value(), dtype_);
}

}  // namespace accrue::train
