#include "accrue/train/accelerator.h"

#include "accrue/autograd/ops/binary.h"
#include "accrue/core/device_backend.h"
#include "accrue/train/default_device.h"
#include "accrue/train/same_loaders.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace accrue::train {
namespace {

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

void check_enumerators(const AcceleratorOptions& options) {
  const auto dealing = static_cast<int>(options.dealing);
  ACCRUE_CHECK(dealing <= static_cast<int>(data::Dealing::round_robin),
               ValueError,
               "accelerator",
               "dealing must be contiguous or round_robin, got ",
               dealing);
  const auto precision = static_cast<int>(options.mixed_precision.value_or(MixedPrecision::no));
  ACCRUE_CHECK(precision <= static_cast<int>(MixedPrecision::fp16),
               ValueError,
               "accelerator",
               "mixed_precision must be no, bf16 or fp16, got ",
               precision);
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
  for (const std::int64_t bytes : {options.first_bucket_bytes, options.bucket_cap_bytes})
    ACCRUE_CHECK(
        bytes >= 1, ValueError, "accelerator", "bytes of buckets must be positive, got ", bytes);
  check_enumerators(options);
  static_cast<void>(data::WindowPlan({.lanes = options.lanes}));
  if (options.grad_scaler) static_cast<void>(optim::GradScaler(*options.grad_scaler));
  if (!options.device) options.device = default_device();
  options.mixed_precision = mixed_precision_or_environment(options.mixed_precision);
  return options;
}

}  // namespace

Accelerator::Accelerator(AcceleratorOptions options)
    : ProcessState(options.process_group),
      options_(checked(options)),
      scaler_(scaler_for(options_)),
      steps_(checked_steps(options_)),
      replicas_(process_group(),
                {.lanes = options_.lanes,
                 .first_bucket_bytes = options_.first_bucket_bytes,
                 .bucket_cap_bytes = options_.bucket_cap_bytes,
                 .overlap = options_.overlap}),
      shared_window_(std::make_shared<PlainWindow>(replicas_)),
      window_(shared_window_),
      window_loss_(std::numeric_limits<double>::quiet_NaN()) {
  if (device().is_cpu()) return;
  backend_of(device(), "accelerator");
  if (device().index > 0) return;
  options_.device = Device::cuda(local_process_index() % cuda_device_count());
}

data::WindowPlan Accelerator::plan_for(const data::DataLoader& loader) const {
  const std::int64_t b = loader.options().batch_size;
  const std::string factors = text(num_processes(), " * ", steps_, " * ", b);
  std::int64_t global = options_.global_batch_size, product = 0;
  const bool fits = !__builtin_mul_overflow(steps_, b, &product) &&
                    !__builtin_mul_overflow(product, num_processes(), &product);
  ACCRUE_CHECK(fits || global != 0,
               ValueError,
               "prepare",
               "ranks * steps * batch size must fit in 63 bits, got ",
               factors);
  ACCRUE_CHECK(
      global == 0 || steps_ == 1 || (fits && product == global),
      ValueError,
      "prepare",
      "global_batch_size must equal ranks * gradient_accumulation_steps * batch_size, got ",
      text(global, " and ", factors),
      "; give one of the two options");
  if (global == 0) global = product;
  return data::WindowPlan({.num_samples = loader.dataset().size(),
                           .global_batch_size = global,
                           .micro_batch_size = b,
                           .lanes = options_.lanes,
                           .world_size = num_processes(),
                           .dealing = options_.dealing,
                           .drop_last = loader.options().drop_last});
}

Loader Accelerator::prepare_one(data::DataLoader& loader) {
  if (is_compat())
    return prepare_data_loader(loader,
                               options_.dataloader_config.value_or(DataLoaderConfiguration()));
  check_same_loader(process_group(), loader, options_, steps_);
  plan_for(loader);  // throws what a pass would throw
  return {*this, &loader, nullptr, std::nullopt};
}

Loader Accelerator::prepare_data_loader(data::DataLoader& loader,
                                        const DataLoaderConfiguration& config) {
  check_same_loader(process_group(), loader, config);
  num_batches(process_group(), loader, config);  // throws what a pass would throw
  return {*this, &loader, nullptr, config};
}

Loader Accelerator::prepare_data_loader(data::StreamLoader& loader,
                                        const DataLoaderConfiguration& config) {
  check_same_loader(process_group(), loader, config);
  return {*this, nullptr, &loader, config};
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

// ---- micro-batches ----

/// Only where upstream's counter decides do loops share one window.
void Accelerator::begin(LoaderPass& pass) {
  pass.window = shared_window_;
  if (options_.invariant && !pass.source) pass.window = std::make_shared<LaneWindow>(replicas_);
  if (!options_.invariant && !is_compat()) pass.window = std::make_shared<PlainWindow>(replicas_);
  passes_.push_back(&pass);
}

void Accelerator::leave(LoaderPass& pass) {
  std::erase(passes_, &pass);
  pass.window->drop();
  if (window_ != pass.window) return;
  const auto outer = std::find_if(
      passes_.rbegin(), passes_.rend(), [](const LoaderPass* other) { return other->was_entered; });
  if (outer != passes_.rend()) window_ = (*outer)->window;  // the loop around goes on
}

bool Accelerator::next_sync(const LoaderPass* pass) {
  if (pass && !pass->source) return pass->step.ends_window;
  const auto& plugin = options_.gradient_accumulation_plugin;
  if (pass && pass->is_last_batch && (!plugin || plugin->sync_with_dataloader)) {
    window_->counter = 0;
    return true;
  }
  return ++window_->counter % steps_ == 0;
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
    ACCRUE_CHECK(
        !MicroBatch::current(),
        StateError,
        "accumulate",
        "micro-batches must not nest, got a second one on this thread; end the other scope "
        "first");
    ACCRUE_CHECK(!pass->entered,
                 StateError,
                 "accumulate",
                 "a micro-batch can be accumulated once, got a second scope for it; add the losses "
                 "in one scope");
  }
  window_ = pass ? pass->window : shared_window_;
  if (pass) pass->entered = pass->was_entered = true;
  window_->enter(next_sync(pass));
  // Also on ranks whose loss wants no gradient: all meet to unscale.
  if (options_.invariant) open_scale();
  return {in_scope_,
          dtype_of_products(mixed_precision()),
          window_->lanes(),
          pass ? pass->step.positions : data::Range()};
}

std::optional<Autocast> Accelerator::autocast() const {
  const auto half = dtype_of_products(mixed_precision());
  if (!half) return std::nullopt;
  return std::optional<Autocast>(std::in_place, *half);
}

void Accelerator::open_scale() {
  if (scaler_ && !window_->scale) window_->scale = scaler_->scale();
}

template <class MakeLoss>
void Accelerator::run_pass(const MakeLoss& make_loss) {
  open_scale();
  const bool averages = sync_gradients() && num_processes() > 1 && num_no_sync_ == 0;
  window_->run(averages, [&] {
    const Variable part = make_loss() / static_cast<double>(steps_);
    (window_->scale ? part * *window_->scale : part).backward();
  });
}

void Accelerator::backward(const Loss& loss) {
  if (is_compat()) return run_pass([&] { return loss.sum() / loss.weight().value(); });
  ACCRUE_CHECK(in_scope_,
               StateError,
               "backward",
               "a scope must be open, got none; call accumulate(model) first");
  open_scale();
  window_->backward(loss);
  if (sync_gradients()) should_step();
}

void Accelerator::backward(const Variable& loss) {
  ACCRUE_CHECK(!options_.invariant,
               StateError,
               "backward",
               "a Loss must be given, which carries row losses and their weight, got a Variable; "
               "use Loss::from_rows or invariant = false");
  run_pass([&] { return loss; });
}

// ---- at window ends ----

bool Accelerator::should_step() {
  if (!sync_gradients()) return false;
  if (const auto totals = window_->finish()) {
    num_skipped_ += window_->was_skipped;
    window_loss_ = mean_of(totals->loss, totals->weight, totals->dtype);
  }
  window_->check_intact();
  if (window_->scale) unscale_window(*std::exchange(window_->scale, std::nullopt));
  return !window_->was_skipped;
}

/// Of a window without weight there is nothing to unscale.
void Accelerator::unscale_window(double scale) {
  if (window_->was_skipped) return;
  window_->was_skipped = true;  // where a rank fails, none steps
  window_->was_skipped = unscale(*scaler_, replicas_.take_new_gradients(), scale, process_group());
  num_skipped_ += window_->was_skipped;
}

bool Accelerator::may_zero_grad() {
  window_->recover();
  return window_->is_recovered() || (is_compat() ? sync_gradients() : !window_->is_partial());
}

double Accelerator::clip_grad_norm(const optim::ParameterList& parameters,
                                   double max_norm,
                                   double norm_type) {
  if (!should_step()) return 0;
  replicas_.note("clip_grad_norm", std::array{max_norm, norm_type});
  return optim::clip_grad_norm(parameters, max_norm, norm_type);
}

void Accelerator::clip_grad_value(const optim::ParameterList& parameters, double value) {
  if (!should_step()) return;
  replicas_.note("clip_grad_value", std::array{value});
  optim::clip_grad_value(parameters, value);
}

}  // namespace accrue::train
