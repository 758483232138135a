// ring_all_reduce: the usual fast sum, whose bits depend on the number of ranks.
#pragma once

#include "accrue/dist/process_group.h"

namespace accrue::dist {

/// Sums `tensor` over all ranks by a ring: W - 1 steps that add, W - 1 that pass sums on. Each link
/// carries 2 (W - 1) / W of the tensor. The result is the same on all ranks.
///
/// Order:   slice s of W starts at rank s + 1 and walks up the ranks, wrapping, so bits depend on W
///          and on the place of an element. For sums that do not, see sum_nodes().
///          On devices that are connected (ProcessGroup::link) NCCL sums, in its own order.
/// Errors:  those of ProcessGroup; DTypeError for integers there.
void ring_all_reduce(ProcessGroup& group, Tensor& tensor);

}  // namespace accrue::dist
