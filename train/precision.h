// Precision: what an Accelerator's mixed_precision means: autocast, and in fp16 a scaled loss.
#pragma once

#include "accrue/dist/process_group.h"
#include "accrue/optim/grad_scaler.h"
#include "accrue/train/options.h"

#include <optional>
#include <string_view>

namespace accrue::train {

/// "no", "bf16" or "fp16".
const char* name_of(MixedPrecision precision);
/// Errors: ValueError for another name.
MixedPrecision mixed_precision_of(std::string_view name);
/// `given`, else what the environment's ACCELERATE_MIXED_PRECISION names, else no.
/// Errors: ValueError for another name.
MixedPrecision mixed_precision_or_environment(std::optional<MixedPrecision> given);
/// What products round to; none for no.
std::optional<DType> dtype_of_products(MixedPrecision precision);

/// The loss scale of an Accelerator. It changes where a window ends, never within one.
class LossScale {
 public:
  /// Without a scaler unless options.mixed_precision is fp16. Errors: ValueError of the options.
  explicit LossScale(const AcceleratorOptions& options);

  optim::GradScaler* scaler() { return scaler_ ? &*scaler_ : nullptr; }
  /// What backward passes multiply their losses with.
  double factor() const { return scaler_ ? scaler_->scale() : 1; }
  /// From here on gradients are scaled, if there is a scaler.
  void open() { open_ = scaler_.has_value(); }
  bool is_open() const { return open_; }
  /// The scaled gradients are gone.
  void drop() { open_ = false; }
  /// Collective: unscales gradients and decides, before anything else changes, whether one of any
  /// rank is NaN or infinite; adjusts the scale and returns that.
  /// Errors: of the group; MismatchError, the same on all ranks, for different scales.
  bool unscale(const optim::ParameterList& parameters, dist::ProcessGroup& group);

 private:
  std::optional<optim::GradScaler> scaler_;
  bool open_ = false;
};

}  // namespace accrue::train
