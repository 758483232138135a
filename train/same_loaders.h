// check_same_loader(): refuses ranks whose loaders would not deal the samples of one epoch.
#pragma once

#include "accrue/data/stream_loader.h"
#include "accrue/dist/process_group.h"
#include "accrue/train/options.h"

namespace accrue::train {

/// Collective with several ranks: all must have a loader with the same number of samples, batch
/// size, drop_last and order, and deal it by the same options. Of what rank 0 alone reads, order
/// and number may differ. The samples themselves are not compared.
/// Errors: those of dist::ProcessGroup; MismatchError, the same on all ranks, with the first
///         difference.
void check_same_loader(dist::ProcessGroup& group,
                       const data::DataLoader& loader,
                       const AcceleratorOptions& options,
                       std::int64_t steps);
void check_same_loader(dist::ProcessGroup& group,
                       const data::DataLoader& loader,
                       const DataLoaderConfiguration& config);
void check_same_loader(dist::ProcessGroup& group,
                       const data::StreamLoader& loader,
                       const DataLoaderConfiguration& config);

}  // namespace accrue::train
