// What Accelerator and its wrappers do where a window ends: sums over ranks, clipping, steps.
#include "accrue/kernels/elementwise.h"
#include "accrue/train/accelerator.h"
#include "accrue/train/window_reduction.h"

#include <set>
#include <utility>

namespace accrue::train {

void Accelerator::finish_window() {
  if (std::exchange(window_finished_, true)) return;
  partial_ = false;
  if (reduces() && pass_) {
    reduce_window(*pass_);
  } else if (options_.invariant && pass_) {
    const double weight = pass_->weight.value();
    record_window(pass_->loss.finish(), weight, pass_->loss.dtype());
    skipped_ ? pass_->window.drop() : pass_->window.finish(weight);
  } else if (std::exchange(took_loss_, false)) {
    const double weight = std::exchange(plain_weight_, {}).value();
    record_window(std::exchange(plain_sum_, 0.0), weight, plain_dtype_);
    if (!skipped_) divide_gradients(weight);
  }
}

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
    if (pass.window.is_poisoned()) reduction().fail(pass, "an earlier backward pass threw");
    pass.check_intact();
    totals = reduction().finish(pass);
  } catch (...) {
    pass.window.poison();
    throw;
  }
  record_window(totals.loss, totals.weight, pass.loss.dtype());
}

void Accelerator::fail_window(const std::string& reason) noexcept {
  if (!reduces() || std::exchange(window_finished_, true)) return;
  pass_->window.poison();
  reduction_->fail(*pass_, reason);
}

void Accelerator::record_window(double sum, double weight, DType dtype) {
  skipped_ = weight == 0;
  num_skipped_ += skipped_;
  window_loss_ = mean_of(sum, weight, dtype);
}

void Accelerator::divide_gradients(double weight) {
  std::set<const Node*> divided;  // optimizers may share parameters
  for (optim::Optimizer* optimizer : optimizers_) {
    for (const auto& [name, parameter] : optimizer->parameters()) {
      if (!divided.insert(parameter.node().get()).second) continue;
      Tensor grad = parameter.grad();
      if (!grad.defined()) continue;
      kernels::launch_cpu(kernels::ScalarForward{kernels::BinaryOp::div, grad, weight, grad});
    }
  }
}

bool Accelerator::should_step() {
  if (!sync_gradients_) return false;
  finish_window();
  if (pass_) pass_->check_intact();
  return !skipped_;
}

bool Accelerator::may_zero_grad() const { return is_compat() ? sync_gradients_ : !partial_; }

void Accelerator::recover() {
  if (!pass_ || !pass_->window.is_poisoned()) return;
  pass_->window.begin(pass_->window.span(), pass_->window.number());
  pass_->weight = LossWeight();
  pass_->loss.drop();
  partial_ = false;
  if (window_finished_ && num_processes() > 1) {
    skipped_ = true;  // all ranks have given the window up
  } else {
    window_finished_ = false;
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
  if (!accelerator_->options_.step_scheduler_with_optimizer || accelerator_->should_step()) {
    scheduler_->step();
  }
}

}  // namespace accrue::train
