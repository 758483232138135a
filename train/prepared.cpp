#include "accrue/train/prepared.h"

#include "accrue/train/accelerator.h"

namespace accrue::train {

void PreparedOptimizer::step() {
  if (!accelerator_->should_step()) return;
  optimizer_->step();
  if (accelerator_->num_processes() == 1) return;  // a text would cost a tenth of a small step
  std::vector<double> lrs;
  for (int group = 0; group < optimizer_->num_groups(); ++group)
    lrs.push_back(optimizer_->lr(group));
  accelerator_->replicas_.note(text("step of optimizer ", number_, " with lr"), lrs);
}

void PreparedOptimizer::zero_grad() {
  if (accelerator_->may_zero_grad()) optimizer_->zero_grad();
}

bool PreparedOptimizer::step_was_skipped() const {
  return accelerator_->optimizer_step_was_skipped();
}

void PreparedScheduler::step() {
  const AcceleratorOptions& options = accelerator_->options();
  if (!options.step_scheduler_with_optimizer) return scheduler_->step();
  if (!accelerator_->should_step()) return;
  const bool splits = options.dataloader_config && options.dataloader_config->split_batches;
  const bool per_rank = options.compat.upstream_accumulation && !splits;
  if (!per_rank) return scheduler_->step();
  for (int rank = 0; rank < accelerator_->num_processes(); ++rank) {
    if (!scheduler_->has_ended()) scheduler_->step();
  }
}

}  // namespace accrue::train
