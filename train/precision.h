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

/// Of fp16, else none. Errors: ValueError of the options.
std::optional<optim::GradScaler> scaler_for(const AcceleratorOptions& options);
/// Collective: divides gradients by `scale` and decides, before anything else changes, whether one
/// of any rank is NaN or infinite; tells `scaler` and returns that.
/// Errors: of the group; MismatchError, the same on all ranks, for different scales.
bool unscale(optim::GradScaler& scaler,
             const optim::ParameterList& parameters,
             double scale,
             dist::ProcessGroup& group);

}  // namespace accrue::train
