#include "accrue/train/accelerator.h"

#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/binary.h"
#include "accrue/core/device_backend.h"
#include "accrue/dist/caught_text.h"
#include "accrue/train/default_device.h"
#include "accrue/train/model_broadcast.h"
#include "accrue/train/same_loaders.h"
#include "accrue/train/window_reduction.h"

#include <algorithm>
#include <limits>
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
  if (!options.device) options.device = default_device();
  options.mixed_precision = mixed_precision_or_environment(options.mixed_precision);
  return options;
}

}  // namespace

Accelerator::Accelerator(AcceleratorOptions options)
    : ProcessState(options.process_group),
      options_(checked(options)),
      loss_scale_(options_),
      steps_(checked_steps(options_)),
      sync_with_dataloader_(!options_.gradient_accumulation_plugin ||
                            options_.gradient_accumulation_plugin->sync_with_dataloader),
      window_loss_(kNoLoss) {
  if (device().is_cpu()) return;
  backend_of(device(), "accelerator");
  if (device().index > 0) return;
  options_.device = Device::cuda(local_process_index() % cuda_device_count());
}

Accelerator::~Accelerator() = default;

/// All ranks start with the values of rank 0.
void Accelerator::add_model(nn::Module& model) {
  if (reduction_ || mean_) check_can_rebuild();
  reduction_.reset();
  mean_.reset();
  for (const auto& entry : model.named_parameters()) {
    const auto is_same = [&](const auto& other) {
      return other.second.node() == entry.second.node();
    };
    if (std::none_of(parameters_.begin(), parameters_.end(), is_same)) parameters_.push_back(entry);
  }
  model.to(device());
  if (num_processes() == 1) return;
  broadcast_model(process_group(), model);
  for (const auto& [name, buffer] : model.named_buffers()) buffers_.push_back(buffer);
}

/// Buckets are built anew for a further model.
void Accelerator::check_can_rebuild() const {
  const auto is_open = [](const LoaderPass* pass) { return pass->window.is_open(); };
  const auto has_grad = [](const auto& entry) {
    return entry.second.node()->as_leaf()->has_grad();
  };
  ACCRUE_CHECK(std::none_of(passes_.begin(), passes_.end(), is_open) &&
                   std::none_of(parameters_.begin(), parameters_.end(), has_grad),
               StateError,
               "prepare",
               "a further model must come where no gradients are alive, got an open window or a "
               "gradient; prepare models first, or call zero_grad() and leave the loop");
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

Loader Accelerator::prepare_windows(data::DataLoader& loader) {
  check_same_loader(process_group(), loader, options_, steps_);
  plan_for(loader);  // throws what a pass would throw
  return {*this, loader};
}

Loader Accelerator::prepare_data_loader(data::DataLoader& loader,
                                        const DataLoaderConfiguration& config) {
  check_same_loader(process_group(), loader, config);
  num_batches(process_group(), loader, config);  // throws what a pass would throw
  return {*this, loader, config};
}

Loader Accelerator::prepare_data_loader(data::StreamLoader& loader,
                                        const DataLoaderConfiguration& config) {
  check_same_loader(process_group(), loader, config);
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
  if (pass->remainder == 0 || rows.rank() == 0) return gather_rows(rows);
  const bool is_cut = rows.size(0) % samples == 0;
  const std::int64_t kept = is_cut ? pass->remainder * (rows.size(0) / samples) : 0;
  const Tensor all =
      gather_alike(rows, is_cut ? text(" that keeps ", kept, " rows") : " that keeps all rows");
  return kept > 0 && kept < all.size(0) ? all.narrow(0, 0, kept) : all;
}

void Accelerator::leave(LoaderPass* pass, bool early) {
  std::erase(passes_, pass);
  if (pass_ != pass) return;
  LoaderPass* const outer = top() && top()->was_entered ? top() : nullptr;
  if (!outer) {  // else the loop around goes on with its window
    state_.sync_gradients = state().sync_gradients;
    state_.is_finished = state().is_finished;
    state_.is_partial = false;
  }
  if (early && pass->source && state_.took_loss) {
    state_.drop_sums();
    counter_ = 0;
  }
  pass_ = outer;
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
    loss_scale_.open();  // also on ranks whose loss wants no gradient: all meet to unscale
  }
  in_scope_ = true;
  pass_ = pass;
  if (pass) pass->was_entered = true;
  if (state().sync_gradients) state().lacks_part = false;  // a new window begins
  state().sync_gradients = next_sync(pass);
  state().is_finished = false;
  return {*this, dtype_of_products(mixed_precision())};
}

std::optional<Autocast> Accelerator::autocast() const {
  const auto half = dtype_of_products(mixed_precision());
  if (!half) return std::nullopt;
  return std::optional<Autocast>(std::in_place, *half);
}

void Accelerator::exit() noexcept {
  micro_batch_.reset();
  in_scope_ = false;
}

AccumulateScope::~AccumulateScope() { accelerator_->exit(); }

NoSyncScope::NoSyncScope(Accelerator& accelerator) : accelerator_(&accelerator) {
  ++accelerator_->num_no_sync_;
}

NoSyncScope::~NoSyncScope() { --accelerator_->num_no_sync_; }

// ---- backward ----

void Accelerator::backward(const Loss& loss) {
  if (options_.invariant) {
    ACCRUE_CHECK(micro_batch_,
                 StateError,
                 "backward",
                 "a scope must be open, got none; call accumulate(model) first");
    if (reduces()) reduction();
    try {
      backward_rows(loss, *pass_);
    } catch (...) {
      fail_window(dist::caught_text());
      throw;
    }
    state().is_partial = !sync_gradients();
    if (sync_gradients()) should_step();
    return;
  }
  const double weight = loss.weight().value();
  if (is_compat()) return backward(loss.sum() / weight);
  WindowState& window = state();
  check_plain_sums();
  try {
    plain_backward(loss.sum(), averages(), &window.sums);
  } catch (...) {
    window.is_poisoned = true;
    throw;
  }
  window.took_loss = true;
  window.weight.add(loss.weight());
  if (weight > 0) window.loss += loss.mean() * weight;
  window.dtype = loss.rows().dtype();
  if (sync_gradients()) should_step();
}

void Accelerator::backward(const Variable& loss) {
  ACCRUE_CHECK(!options_.invariant,
               StateError,
               "backward",
               "a Loss must be given, which carries row losses and their weight, got a Variable; "
               "use Loss::from_rows or invariant = false");
  if (sync_gradients()) skipped_ = false;
  const bool averages_now = averages() && num_no_sync_ == 0;
  plain_backward(loss / static_cast<double>(steps_), averages_now, nullptr);
  if (averages_now) average_gradients();
}

/// Where all ranks average afterwards, they must learn that this one cannot.
void Accelerator::plain_backward(const Variable& loss, bool averages, GradientSums* sums) {
  loss_scale_.open();
  const double scale = loss_scale_.factor();
  try {
    (scale == 1 ? loss : loss * scale).backward({}, {.sums = sums});
  } catch (...) {
    if (averages) fail_average(dist::caught_text());
    throw;
  }
  state().is_partial = !sync_gradients();
}

void Accelerator::backward_rows(const Loss& loss, LoaderPass& pass) {
  MicroBatch& batch = *micro_batch_;
  check_intact();
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
  ACCRUE_CHECK(!state().is_finished,
               StateError,
               "backward",
               "backward must come before step() and clipping, got a window that they ended; "
               "reorder the loop");
  LossWeight weight = pass.weight;
  weight.add(loss.weight());
  if (reduces()) reduction().begin(pass, weight);
  try {
    if (rows.requires_grad()) {
      const Tensor start = Tensor::full({1}, loss_scale_.factor(), rows.dtype(), rows.device());
      Engine({}).run(rows, start.expand(rows.shape()));
      pass.window.check_uses();
    }
    pass.loss.add(batch, rows.value(), rows_each);
  } catch (...) {
    pass.window.poison();
    throw;
  }
  pass.weight = std::move(weight);
}

}  // namespace accrue::train
