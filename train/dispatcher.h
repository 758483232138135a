// deal_round(): rank 0 reads samples and sends every rank its slice.
#pragma once

#include "accrue/data/batch_source.h"
#include "accrue/data/rounds.h"
#include "accrue/dist/process_group.h"

#include <optional>

namespace accrue::train {

/// Collective: rank 0 collates its round at once and broadcasts the tensors; every rank keeps its
/// slice of them. None on all ranks when rank 0 has no round; what others pass is not read.
///
/// Tensors are cut along their sample axis, else along dimension 0; scalars go to all.
/// Errors: those of the group; on rank 0 what collate throws.
std::optional<data::DealtBatch> deal_round(dist::ProcessGroup& group,
                                           const std::optional<data::Round>& round,
                                           const data::Collate& collate);

}  // namespace accrue::train
