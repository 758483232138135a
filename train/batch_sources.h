// Batch sources: a loader's batches dealt to ranks as Accelerate deals them.
#pragma once

#include "accrue/data/batch_source.h"
#include "accrue/data/stream_loader.h"
#include "accrue/dist/process_group.h"
#include "accrue/train/options.h"

#include <memory>

namespace accrue::train {

/// One pass of this rank over the loader's epoch, without its first `skip` batches. The group is
/// used where rank 0 reads for all: then every next() is a collective call.
///
/// Errors:   ValueError for batches that cannot be split; of next() also those of the group.
/// Lifetime: the pass borrows both.
std::unique_ptr<data::BatchSource> open_source(dist::ProcessGroup& group,
                                               data::DataLoader& loader,
                                               const DataLoaderConfiguration& config,
                                               std::int64_t skip = 0);
std::unique_ptr<data::BatchSource> open_source(dist::ProcessGroup& group,
                                               data::StreamLoader& loader,
                                               const DataLoaderConfiguration& config,
                                               std::int64_t skip = 0);

/// Batches of one pass over the loader on this rank. Errors: as open_source().
std::int64_t num_batches(const dist::ProcessGroup& group,
                         data::DataLoader& loader,
                         const DataLoaderConfiguration& config);

}  // namespace accrue::train
