// GradScaler: scales losses, so that float16 gradients neither vanish nor overflow.
#pragma once

#include "accrue/optim/optimizer.h"

namespace accrue::optim {

/// torch's defaults.
struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;             ///< after growth_interval steps in a row
  double backoff_factor = 0.5;          ///< after a step that was skipped
  std::int64_t growth_interval = 2000;  ///< steps
  bool enabled = true;                  ///< false: every function lets pass what it gets
};

/// What a GradScaler changes as it goes, to be saved and loaded. Scale 0: of one not enabled.
struct GradScalerState {
  double scale = 0;
  double growth_factor = 0, backoff_factor = 0;
  std::int64_t growth_interval = 0;
  std::int64_t growth_tracker = 0;  ///< steps since the scale changed
};

/// torch's GradScaler. Accelerator has one of its own for fp16; without it:
///
///     scaler.scale(loss).backward();
///     scaler.unscale(sgd);                      // only to clip
///     optim::clip_grad_norm(parameters, 1.0);
///     scaler.step(sgd);                         // not after an overflow
///     scaler.update();
///
/// A scale of a power of two, as the defaults give, changes no bit but by overflow and underflow.
/// The scale is kept in float32 and multiplied in double.
/// Threads: one at a time. Ranks: all come to the same scale when they have the same gradients.
class GradScaler {
 public:
  /// Errors: ValueError unless init_scale is a positive float, growth_factor > 1, 0 <
  ///         backoff_factor < 1 and growth_interval >= 1.
  explicit GradScaler(const GradScalerOptions& options = {});

  bool is_enabled() const { return enabled_; }
  /// 1 when not enabled.
  double scale() const { return enabled_ ? state_.scale : 1; }
  /// `loss` times the scale.
  Variable scale(const Variable& loss) const;

  /// Divides the optimizer's gradients by the scale: each is multiplied with the reciprocal,
  /// rounded to float32. Notes whether one was NaN or infinite.
  /// Errors: StateError for a second time, or after step(), before update(); of grad().
  void unscale(Optimizer& optimizer);
  /// Steps unless a gradient was NaN or infinite; unscales first unless that was done. Returns
  /// whether it stepped.
  /// Errors: StateError for a second time before update(), or when no parameter has a gradient; of
  ///         unscale() and the optimizer.
  bool step(Optimizer& optimizer);
  /// Once per iteration: lowers or raises the scale by what unscale() and step() noted.
  /// Errors: StateError when they noted nothing.
  void update();
  /// What update() does, with an overflow that the caller found out.
  void update(bool overflowed);
  /// Errors: ValueError unless positive and finite in float32.
  void set_scale(double scale);

  /// Where it stands between two iterations.
  GradScalerState state() const { return enabled_ ? state_ : GradScalerState(); }
  /// Errors: ValueError for the state of a scaler that was not enabled, and for values outside the
  ///         domain of the options. One not enabled takes any state and stays as it is.
  void load_state(const GradScalerState& state);

 private:
  /// What happened to an optimizer since the last update().
  struct Entry {
    const Optimizer* optimizer;
    bool overflowed = false, stepped = false;
  };
  Entry* find(const Optimizer& optimizer);

  bool enabled_;
  GradScalerState state_;
  std::vector<Entry> entries_;
};

/// Multiplies the gradients of all parameters with 1 / scale, rounded to float32. Returns whether
/// one was NaN or infinite before. Errors: of grad().
bool unscale_gradients(const ParameterList& parameters, double scale);

}  // namespace accrue::optim
