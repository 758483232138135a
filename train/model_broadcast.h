// broadcast_model(): all ranks start with the parameters and buffers of rank 0.
#pragma once

#include "accrue/dist/process_group.h"
#include "accrue/nn/module.h"

namespace accrue::train {

/// Collective: copies rank 0's parameters and buffers to all ranks, once all have the same names,
/// shapes, dtypes and frozen parameters in the same order.
/// Errors: those of dist::ProcessGroup; MismatchError, the same on all ranks, that names the first
///         parameter or buffer in which a rank differs from rank 0.
void broadcast_model(dist::ProcessGroup& group, const nn::Module& model);

}  // namespace accrue::train
