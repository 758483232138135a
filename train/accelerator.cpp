#include "accrue/train/accelerator.h"

#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/binary.h"
#include "accrue/kernels/elementwise.h"
#include "accrue/train/model_broadcast.h"
#include "accrue/train/window_reduction.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace accrue::train {
namespace {

constexpr double kNoLoss = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kMaxSteps = std::int64_t{1} << 31;

std::int64_t checked_steps(const AcceleratorOptions& options) {
  const auto& plugin = options.gradient_accumulation_plugin;
  ACCRUE_CHECK(!plugin || options.gradient_accumulation_steps == 1,
               ValueError,
               "accelerator",
               "steps must be given once, got gradient_accumulation_steps = ",
               options.gradient_accumulation_steps,
               " and a plugin; use one of them");
  const std::int64_t steps = plugin ? plugin->num_steps : options.gradient_accumulation_steps;
  ACCRUE_CHECK(steps >= 1 && steps <= kMaxSteps,
               ValueError,
               "accelerator",
               "gradient_accumulation_steps must lie in [1, 2^31], got ",
               steps);
  return steps;
}

AcceleratorOptions checked(AcceleratorOptions options) {
  if (options.compat.upstream_accumulation) options.invariant = false;
  const auto& plugin = options.gradient_accumulation_plugin;
  ACCRUE_CHECK(!plugin || plugin->sync_with_dataloader || options.compat.upstream_accumulation,
               ValueError,
               "accelerator",
               "windows end with the epoch, got sync_with_dataloader = false; use "
               "Compat::accelerate() to carry them over");
  ACCRUE_CHECK(options.global_batch_size >= 0,
               ValueError,
               "accelerator",
               "global_batch_size must be >= 0, got ",
               options.global_batch_size);
  ACCRUE_CHECK(!options.dataloader_config || options.compat.upstream_accumulation,
               ValueError,
               "accelerator",
               "windows deal batches in their own way, got a dataloader_config; use "
               "Compat::accelerate(), or prepare_data_loader() for evaluation");
  return options;
}

}  // namespace

Accelerator::Accelerator(AcceleratorOptions options)
    : ProcessState(options.process_group),
      options_(checked(std::move(options))),
      steps_(checked_steps(options_)),
      sync_with_dataloader_(!options_.gradient_accumulation_plugin ||
                            options_.gradient_accumulation_plugin->sync_with_dataloader),
      window_loss_(kNoLoss) {
  ACCRUE_CHECK(options_.invariant || num_processes() == 1,
               ValueError,
               "accelerator",
               "several ranks need the invariant mode, got invariant = false and ",
               num_processes(),
               " ranks; leave invariant and Compat at their defaults");
}

/// All ranks start with the values of rank 0.
void Accelerator::add_model(const nn::Module& model) {
  for (const Variable& parameter : model.parameters()) {
    const auto is_same = [&](const Variable& other) { return other.node() == parameter.node(); };
    if (std::none_of(parameters_.begin(), parameters_.end(), is_same))
      parameters_.push_back(parameter);
  }
  if (num_processes() > 1) broadcast_model(process_group(), model);
}

data::WindowPlan Accelerator::plan_for(const data::DataLoader& loader) const {
  const std::int64_t b = loader.options().batch_size;
  std::int64_t global = options_.global_batch_size;
  if (global == 0) {
    ACCRUE_CHECK(!__builtin_mul_overflow(steps_, b, &global) &&
                     !__builtin_mul_overflow(global, num_processes(), &global),
                 ValueError,
                 "prepare",
                 "ranks * steps * batch size must fit in 63 bits, got ",
                 num_processes(),
                 " * ",
                 steps_,
                 " * ",
                 b);
  }
  ACCRUE_CHECK(
      options_.global_batch_size == 0 || steps_ == 1 || num_processes() * steps_ * b == global,
      ValueError,
      "prepare",
      "global_batch_size must equal ranks * gradient_accumulation_steps * batch_size, got ",
      global,
      " and ",
      num_processes(),
      " * ",
      steps_,
      " * ",
      b,
      "; give one of the two options");
  return data::WindowPlan({.num_samples = loader.dataset().size(),
                           .global_batch_size = global,
                           .micro_batch_size = b,
                           .lanes = options_.lanes,
                           .world_size = num_processes(),
                           .dealing = options_.dealing,
                           .drop_last = loader.options().drop_last});
}

Loader Accelerator::prepare_data_loader(data::DataLoader& loader,
                                        const DataLoaderConfiguration& config) {
  num_batches(process_group(), loader, config);  // throws what a pass would throw
  return {*this, loader, config};
}

Loader Accelerator::prepare_data_loader(data::StreamLoader& loader,
                                        const DataLoaderConfiguration& config) {
  return {*this, loader, config};
}

Loader Accelerator::prepare_one(data::StreamLoader& loader) {
  ACCRUE_CHECK(!options_.invariant,
               ValueError,
               "prepare",
               "windows need a number of samples, got a stream; use prepare_data_loader() for "
               "evaluation, or invariant = false");
  return prepare_data_loader(loader,
                             options_.dataloader_config.value_or(DataLoaderConfiguration()));
}

Tensor Accelerator::gather_for_metrics(const Tensor& rows) const {
  const LoaderPass* pass = top();
  if (!pass) return gather(rows);
  const std::int64_t samples = pass->batch.size();
  const bool is_cut = pass->remainder > 0 && rows.rank() > 0 && rows.size(0) % samples == 0;
  const std::int64_t kept = is_cut ? pass->remainder * (rows.size(0) / samples) : 0;
  const Tensor all = gather_rows(rows);
  return kept > 0 && kept < all.size(0) ? all.narrow(0, 0, kept) : all;
}

void Accelerator::leave(LoaderPass* pass) {
  std::erase(passes_, pass);
  if (pass_ != pass) return;
  pass_ = nullptr;
  partial_ = false;
}

// ---- micro-batches ----

bool Accelerator::next_sync(const LoaderPass* pass) {
  if (pass && !pass->source) return pass->step.ends_window;
  if (sync_with_dataloader_ && pass && pass->is_last()) {
    counter_ = 0;
    return true;
  }
  return ++counter_ % steps_ == 0;
}

AccumulateScope Accelerator::enter() {
  LoaderPass* pass = top();
  ACCRUE_CHECK(!in_scope_,
               StateError,
               "accumulate",
               "scopes must not nest, got a second one; pass all models to one accumulate()");
  if (options_.invariant) {
    ACCRUE_CHECK(pass,
                 StateError,
                 "accumulate",
                 "a prepared loader must be iterated, got none; loop over the loader that "
                 "prepare() returned or use invariant = false");
    ACCRUE_CHECK(!pass->source,
                 StateError,
                 "accumulate",
                 "windows deal each sample once, got a loader that is dealt as upstream; it is for "
                 "evaluation, or use invariant = false");
    ACCRUE_CHECK(!pass->entered,
                 StateError,
                 "accumulate",
                 "a micro-batch can be accumulated once, got a second scope for it; add the losses "
                 "in one scope");
    micro_batch_.emplace(pass->window, pass->step.positions.begin, pass->step.positions.end);
    pass->entered = true;
  }
  in_scope_ = true;
  pass_ = pass;
  sync_gradients_ = next_sync(pass);
  window_finished_ = false;
  return AccumulateScope(*this);
}

void Accelerator::exit() noexcept {
  micro_batch_.reset();
  in_scope_ = false;
}

AccumulateScope::~AccumulateScope() { accelerator_->exit(); }

// ---- backward ----

void Accelerator::backward(const Loss& loss) {
  if (options_.invariant) {
    ACCRUE_CHECK(micro_batch_,
                 StateError,
                 "backward",
                 "a scope must be open, got none; call accumulate(model) first");
    backward_rows(loss, *pass_);
    partial_ = !sync_gradients_;
    if (sync_gradients_) finish_window();
    return;
  }
  if (is_compat()) return backward(loss.sum() / loss.weight().value());
  loss.sum().backward();
  partial_ = !sync_gradients_;
  took_loss_ = true;
  plain_weight_.add(loss.weight());
  plain_sum_ += loss.mean() * loss.weight().value();
  plain_dtype_ = loss.rows().dtype();
  if (sync_gradients_) finish_window();
}

void Accelerator::backward(const Variable& loss) {
  ACCRUE_CHECK(!options_.invariant,
               StateError,
               "backward",
               "a Loss must be given, which carries row losses and their weight, got a Variable; "
               "use Loss::from_rows or invariant = false");
  (loss / static_cast<double>(steps_)).backward();
  partial_ = !sync_gradients_;
}

void Accelerator::backward_rows(const Loss& loss, LoaderPass& pass) {
  MicroBatch& batch = *micro_batch_;
  ACCRUE_CHECK(!pass.window.is_poisoned(),
               StateError,
               "backward",
               "a backward pass of this window threw, so its sums are incomplete; call "
               "optimizer.zero_grad() first");
  const Variable& rows = loss.rows();
  const std::int64_t rows_each = rows_per_sample(rows.value(), 0, "backward", "the loss");
  ACCRUE_CHECK(rows.numel() == batch.size() * rows_each,
               StateError,
               "backward",
               "the loss must have rows for the ",
               batch.size(),
               " samples of the micro-batch, got ",
               rows.numel(),
               " rows of ",
               rows_each,
               " per sample");
  batch.claim_backward();
  ACCRUE_CHECK(!window_finished_,
               StateError,
               "backward",
               "backward must come before step() and clipping, got a window that they ended; "
               "reorder the loop");
  LossWeight weight = pass.weight;
  weight.add(loss.weight());
  try {
    if (rows.requires_grad()) {
      if (!one_.defined() || one_.dtype() != rows.dtype()) one_ = Tensor::ones({1}, rows.dtype());
      Engine({}).run(rows, one_.expand(rows.shape()));
      pass.window.check_uses();
    }
    pass.loss.add(batch, rows.value(), rows_each);
  } catch (...) {
    pass.window.poison();
    throw;
  }
  pass.weight = std::move(weight);
}

void Accelerator::finish_window() {
  if (std::exchange(window_finished_, true)) return;
  partial_ = false;
  if (options_.invariant && pass_ && num_processes() > 1) {
    const DType dtype = pass_->loss.dtype();
    const WindowTotals totals = reduce_window(process_group(), parameters_, *pass_);
    record_window(totals.loss, totals.weight, dtype);
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
  return !skipped_;
}

bool Accelerator::may_zero_grad() const { return is_compat() ? sync_gradients_ : !partial_; }

void Accelerator::recover() {
  if (!pass_ || !pass_->window.is_poisoned()) return;
  pass_->window.begin(pass_->window.span(), pass_->window.number());
  pass_->weight = LossWeight();
  pass_->loss.drop();
  window_finished_ = false;
  partial_ = false;
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
