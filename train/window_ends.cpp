// What Accelerator and its wrappers do where a window ends: sums over ranks, clipping, steps.
#include "accrue/autograd/leaf.h"
#include "accrue/train/accelerator.h"
#include "accrue/train/window_reduction.h"

#include <memory>
#include <set>
#include <utility>

namespace accrue::train {
namespace {

/// Parameters whose gradients came since the last call, each once.
optim::ParameterList with_new_gradients(const optim::ParameterList& parameters) {
  std::vector<optim::ParameterList::Entry> entries;
  for (const auto& entry : parameters) {
    if (entry.second.node()->as_leaf()->take_is_new()) entries.push_back(entry);
  }
  return entries;
}

}  // namespace

void Accelerator::finish_window() {
  WindowState& window = state();
  if (!window.is_finished && !options_.invariant) check_plain_sums();
  if (std::exchange(window.is_finished, true)) return;
  window.is_partial = false;
  if (reduces() && pass_) {
    reduce_window(*pass_);
  } else if (options_.invariant && pass_) {
    const double weight = pass_->weight.value();
    record_window(pass_->loss.finish(), weight, pass_->loss.dtype());
    skipped_ ? pass_->window.drop() : pass_->window.finish(weight);
  } else if (window.took_loss) {
    finish_plain(window);
  }
}

void Accelerator::finish_plain(WindowState& window) {
  try {
    if (averages()) return average_gradients(window);
    record_window(window.loss, window.weight.value(), window.dtype);
    if (!skipped_) window.sums.finish(window.weight.value());
  } catch (...) {
    window.is_poisoned = true;  // some gradients are final and some are not
    throw;
  }
  window.drop_sums();
}

void Accelerator::check_intact() const {
  const bool is_poisoned = state().is_poisoned || (pass_ && pass_->window.is_poisoned());
  ACCRUE_CHECK(!is_poisoned && !(state().lacks_part && sync_gradients()),
               StateError,
               "backward",
               "a backward pass of this window threw, so its sums are incomplete; call "
               "optimizer.zero_grad() first");
}

// ---- plain passes of several ranks ----

void Accelerator::check_plain_sums() {
  WindowState& window = state();
  const bool is_complete = !window.is_poisoned && !window.lacks_part;
  if (!is_complete && averages() && !std::exchange(window.is_finished, true)) {
    window.is_poisoned = true;
    rank_mean().fail("an earlier backward pass threw");
  }
  check_intact();
}

RankMean& Accelerator::rank_mean() {
  if (mean_) return *mean_;
  std::set<const Node*> missing;
  for (const auto& [name, parameter] : optimized_) missing.insert(parameter.node().get());
  for (const auto& [name, parameter] : parameters_) missing.erase(parameter.node().get());
  ACCRUE_CHECK(missing.empty(),
               StateError,
               "backward",
               "with several ranks all parameters must belong to a prepared model, got ",
               missing.size(),
               " of optimizers that do not; pass their models to prepare()");
  mean_ = std::make_unique<RankMean>(process_group(), parameters_);
  return *mean_;
}

/// As DistributedDataParallel: the mean over ranks of what they have.
void Accelerator::average_gradients() {
  skipped_ = true;  // where a rank fails, none steps
  rank_mean().reduce();
  skipped_ = false;
  broadcast_buffers();
}

/// Divided by the weight of all ranks.
void Accelerator::average_gradients(WindowState& window) {
  skipped_ = true;
  Tensor total = Tensor::full({1}, window.loss);
  std::vector<dist::NodeSum> more = {{{{0, process_index(), total.clone()}}, total}};
  const double divisor = rank_mean().reduce(window.sums, window.weight.value(), more);
  window.drop_sums();
  record_window(
      divisor == 0 ? 0.0 : static_cast<double>(total.item<float>()), divisor, window.dtype);
  broadcast_buffers();
}

void Accelerator::fail_average(const std::string& reason) {
  skipped_ = state().is_finished = true;
  state().drop_sums();
  rank_mean().fail(reason);
}

/// All ranks get those of rank 0, between two steps.
void Accelerator::broadcast_buffers() {
  for (Tensor& buffer : buffers_) process_group().broadcast(buffer);
}

// ---- windows of several ranks ----

WindowReduction& Accelerator::reduction() {
  if (!reduction_) {
    const dist::BucketerOptions options{.lanes = options_.lanes,
                                        .first_bucket_bytes = options_.first_bucket_bytes,
                                        .bucket_cap_bytes = options_.bucket_cap_bytes,
                                        .overlap = options_.overlap};
    reduction_ = std::make_unique<WindowReduction>(process_group(), parameters_, options);
  }
  return *reduction_;
}

void Accelerator::reduce_window(LoaderPass& pass) {
  WindowTotals totals;
  try {
    if (pass.window.is_poisoned() || pass.state.lacks_part)
      reduction().fail(pass, "an earlier backward pass threw");
    check_intact();
    totals = reduction().finish(pass);
  } catch (...) {
    pass.window.poison();
    throw;
  }
  record_window(totals.loss, totals.weight, totals.dtype);
  broadcast_buffers();
}

void Accelerator::fail_window(const std::string& reason) noexcept {
  if (!reduces() || std::exchange(state().is_finished, true)) return;
  pass_->window.poison();
  reduction_->fail(*pass_, reason);
}

void Accelerator::record_window(double sum, double weight, DType dtype) {
  skipped_ = weight == 0;
  num_skipped_ += skipped_;
  window_loss_ = mean_of(sum, weight, dtype);
}

bool Accelerator::should_step() {
  if (!sync_gradients()) return false;
  finish_window();
  check_intact();
  if (loss_scale_.is_open()) unscale_window();
  return !skipped_;
}

/// Of a window without weight there is nothing to unscale.
void Accelerator::unscale_window() {
  if (skipped_) return loss_scale_.drop();
  optim::ParameterList parameters = optimized_;
  parameters.append(optim::ParameterList(parameters_));
  skipped_ = true;  // where a rank fails, none steps
  skipped_ = loss_scale_.unscale(with_new_gradients(parameters), process_group());
  num_skipped_ += skipped_;
}

bool Accelerator::may_zero_grad() const {
  return is_compat() ? sync_gradients() : !state().is_partial;
}

void Accelerator::recover() {
  WindowState& window = state();
  const bool has_lanes = pass_ && pass_->window.is_poisoned();
  if (!has_lanes && !window.is_poisoned) return;
  if (has_lanes) {
    pass_->window.begin(pass_->window.span(), pass_->window.number());
    pass_->weight = LossWeight();
    pass_->loss.drop();
  }
  window.drop_sums();
  window.is_partial = false;
  loss_scale_.drop();
  // With several ranks a window is given up by all: now, or when the others wait for this one.
  window.lacks_part = num_processes() > 1 && !window.is_finished;
  if (num_processes() > 1 && window.is_finished) {
    skipped_ = true;
  } else {
    window.is_finished = false;
  }
}

// ---- at window ends ----

double Accelerator::clip_grad_norm(const optim::ParameterList& parameters,
                                   double max_norm,
                                   double norm_type) {
  return should_step() ? optim::clip_grad_norm(parameters, max_norm, norm_type) : 0.0;
}

void Accelerator::clip_grad_value(const optim::ParameterList& parameters, double value) {
  if (should_step()) optim::clip_grad_value(parameters, value);
}

void PreparedOptimizer::step() {
  if (accelerator_->should_step()) optimizer_->step();
}

void PreparedOptimizer::zero_grad() {
  accelerator_->recover();
  if (accelerator_->may_zero_grad()) optimizer_->zero_grad();
}

bool PreparedOptimizer::step_was_skipped() const {
  return accelerator_->optimizer_step_was_skipped();
}

void PreparedScheduler::step() {
  const AcceleratorOptions& options = accelerator_->options_;
  if (!options.step_scheduler_with_optimizer) return scheduler_->step();
  if (!accelerator_->should_step()) return;
  const bool splits = options.dataloader_config && options.dataloader_config->split_batches;
  const bool per_rank = accelerator_->is_compat() && !splits;
  if (!per_rank) return scheduler_->step();
  for (int rank = 0; rank < accelerator_->num_processes(); ++rank) {
    if (!scheduler_->has_ended()) scheduler_->step();
  }
}

}  // namespace accrue::train
