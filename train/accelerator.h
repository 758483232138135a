// Accelerator: the trainer's front. It decides when gradients are complete and how they are
// divided.
#pragma once

#include "accrue/nn/layer.h"
#include "accrue/optim/clip.h"
#include "accrue/optim/optimizer.h"
#include "accrue/optim/schedule.h"
#include "accrue/train/distributed_data_parallel.h"
#include "accrue/train/loader.h"
#include "accrue/train/options.h"
#include "accrue/train/precision.h"
#include "accrue/train/prepared.h"
#include "accrue/train/process_state.h"
#include "accrue/train/training_window.h"

#include <concepts>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

namespace accrue::train {

/// Trains with gradient accumulation, on any number of ranks.
///
/// By default the same global batch gives the same bits however it is split into micro-batches:
/// backward() adds row by row into lanes, and the window is divided once by its weight. With
/// `invariant = false` gradients are plain chains in call order, summed over ranks, and any
/// operation is allowed.
///
/// With mixed precision prepared layers, and all within accumulate(), compute under Autocast. In
/// fp16 backward() scales the loss; where a window ends gradients are unscaled, before clipping,
/// and when one of any rank is NaN or infinite no rank steps and the scale is lowered.
///
/// Threads: belongs to one thread. Lifetime: prepared objects borrow it and what they wrap.
class Accelerator : public ProcessState {
 public:
  /// Errors: ValueError for options outside their domain or that contradict each other; DeviceError
  /// for a device that this machine lacks.
  explicit Accelerator(AcceleratorOptions options = {});
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;

  /// Prepares models, optimizers, loaders and schedulers and returns them in the order given: a
  /// model as it is, moved to device(), the others wrapped. One object comes back bare. A
  /// collective call with several ranks, which must have the same models and loaders; seeds only
  /// where they shuffle. Errors: ValueError of the window plan of a loader; MismatchError, the same
  /// on all ranks, with the first difference.
  template <class First, class... Rest>
  decltype(auto) prepare(First& first, Rest&... rest) {
    if constexpr (sizeof...(Rest) == 0) {
      return prepare_one(first);
    } else {
      return std::tuple<decltype(prepare_one(first)), decltype(prepare_one(rest))...>(
          prepare_one(first), prepare_one(rest)...);
    }
  }

  /// The model in its wrapper, or a model itself.
  template <std::derived_from<nn::Module> Model>
  static Model& unwrap_model(Model& model) {
    return model;
  }
  template <class Model>
  static Model& unwrap_model(const DistributedDataParallel<Model>& wrapper) {
    return wrapper.module();
  }

  /// A loader whose batches are dealt as upstream deals them: for evaluation, or for training with
  /// invariant = false. gather_for_metrics() drops what appears twice. Collective, as prepare().
  /// Errors: ValueError for batches that cannot be split, of a later pass for a stream; as
  /// prepare().
  Loader prepare_data_loader(data::DataLoader& loader, const DataLoaderConfiguration& config = {});
  Loader prepare_data_loader(data::StreamLoader& loader,
                             const DataLoaderConfiguration& config = {});

  /// Collective: rows of all ranks, for metrics of the loader that is iterated now, in rank order,
  /// which is that of positions under a window plan. Ranks may have different numbers of rows, also
  /// none. What upstream's dealing repeats in the last batches is dropped, where each sample has
  /// the same number of rows; there rows can be filtered only afterwards. One rank, or no loader:
  /// gather(). Errors also: ShapeError for a scalar; MismatchError, the same on all ranks, for rows
  /// of another shape or dtype, or of which ranks would drop different numbers.
  Tensor gather_for_metrics(const Tensor& rows) const;
  using ProcessState::gather_for_metrics;

  /// Opens the micro-batch of the loader that is iterated now, until the scope ends. All models of
  /// the step go into one call. Errors: StateError when no prepared loader is iterated (invariant
  /// mode), a scope is open, or the micro-batch was used before.
  template <class... Models>
  [[nodiscard]] AccumulateScope accumulate(const Models&...) {
    return enter();
  }

  /// With invariant = false: backward(Variable) does not average over ranks until the scope ends; a
  /// later one does, of all that has added up. Windows decide for themselves.
  template <class... Models>
  [[nodiscard]] NoSyncScope no_sync(const Models&...) {
    return NoSyncScope(num_no_sync_);
  }

  /// Autocast as in accumulate(), for code outside it; nothing without mixed precision.
  [[nodiscard]] std::optional<Autocast> autocast() const;
  /// Not null in fp16: its scale, to be saved and loaded.
  optim::GradScaler* scaler() { return scaler_ ? &*scaler_ : nullptr; }
  MixedPrecision mixed_precision() const { return *options_.mixed_precision; }
  /// Unscales gradients where a window ended, unless that was done: clipping and step() do it too,
  /// backward(Loss) at once. Collective with several ranks in fp16.
  void unscale_gradients() { should_step(); }

  /// The micro-batch's backward pass. When its window ends here, gradients are complete afterwards;
  /// several ranks sum them meanwhile.
  /// Errors: StateError (no scope, second pass, poisoned window, gradient not dropped, a parameter
  /// written since an earlier micro-batch); an exception of an operation passes through and poisons
  /// the window until zero_grad(). Where the window ends, the other ranks throw DistributedError
  /// then, which names this one and says why, and no rank steps.
  void backward(const Loss& loss);
  /// Upstream's meaning: `loss` divided by the number of steps. Only with invariant = false. Where
  /// sync_gradients(), several ranks average gradients afterwards, as DistributedDataParallel does.
  /// Errors: as above; what passes of the window have added to gradients goes with zero_grad()
  /// then.
  void backward(const Variable& loss);

  /// True in the micro-batch that ends a window.
  bool sync_gradients() const { return window_->ends(); }
  std::int64_t gradient_accumulation_steps() const { return steps_; }
  const AcceleratorOptions& options() const { return options_; }
  /// Where prepare() moves models and loaders move batches.
  Device device() const { return options_.device.value_or(Device::cpu()); }
  /// True when this loop's last window had weight 0, or in fp16 a gradient that was NaN or
  /// infinite, so that optimizers and schedulers did not step.
  bool optimizer_step_was_skipped() const { return window_->was_skipped; }
  std::int64_t num_skipped_windows() const { return num_skipped_; }
  /// The mean loss of the last finished window, reduced like a gradient; NaN before the first and
  /// for weight 0. Complete where sync_gradients() is true. With invariant = false the sum is a
  /// plain chain over micro-batches.
  double window_loss() const { return window_loss_; }

  /// optim::clip_grad_norm at window ends, of unscaled gradients; elsewhere, and where the step is
  /// skipped, it does nothing and returns 0.
  double clip_grad_norm(const optim::ParameterList& parameters,
                        double max_norm,
                        double norm_type = 2);
  /// optim::clip_grad_value at window ends; elsewhere it does nothing.
  void clip_grad_value(const optim::ParameterList& parameters, double value);

 private:
  friend class Evaluation;
  friend class Loader;
  friend class PreparedOptimizer;
  friend class PreparedScheduler;

  template <std::derived_from<nn::Module> Model>
  Model& prepare_one(Model& model) {
    replicas_.add(model);
    model.to(device());
    if constexpr (std::derived_from<Model, nn::Layer>)
      model.set_autocast(dtype_of_products(mixed_precision()));
    return model;
  }
  PreparedOptimizer prepare_one(optim::Optimizer& optimizer) {
    replicas_.add(optimizer.parameters());
    return PreparedOptimizer(*this, optimizer, num_optimizers_++);
  }
  Loader prepare_one(data::DataLoader& loader);
  Loader prepare_one(data::StreamLoader& loader);
  PreparedScheduler prepare_one(optim::Schedule& scheduler) {
    return PreparedScheduler(*this, scheduler);
  }

  data::WindowPlan plan_for(const data::DataLoader& loader) const;
  bool is_compat() const { return options_.compat.upstream_accumulation; }
  LoaderPass* top() const { return passes_.empty() ? nullptr : passes_.back(); }
  void begin(LoaderPass& pass);
  void leave(LoaderPass& pass);

  /// A pass outside the window's sums: what `make_loss` returns, divided and scaled.
  template <class MakeLoss>
  void run_pass(const MakeLoss& make_loss);
  AccumulateScope enter();
  bool next_sync(const LoaderPass* pass);
  /// What optimizer.step() asks: a window ended, with a weight. Completes its gradients first.
  bool should_step();
  /// fp16: gives a window the scale of its losses before the first.
  void open_scale();
  void unscale_window(double scale);
  /// Drops what a failed pass left. False while gradients are sums of a part of a window.
  bool may_zero_grad();

  AcceleratorOptions options_;
  std::optional<optim::GradScaler> scaler_;
  std::int64_t steps_;
  Replicas replicas_;
  std::vector<LoaderPass*> passes_;  ///< active passes, the innermost last
  /// Where no loader has one of its own: upstream counts through all of them.
  std::shared_ptr<TrainingWindow> shared_window_;
  std::shared_ptr<TrainingWindow> window_;  ///< of the last accumulate()
  int num_no_sync_ = 0;
  int num_optimizers_ = 0;
  bool in_scope_ = false;
  std::int64_t num_skipped_ = 0;
  double window_loss_;
};

}  // namespace accrue::train
