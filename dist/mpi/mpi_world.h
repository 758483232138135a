// mpi_world: the processes that an MPI launcher started.
#pragma once

#include "accrue/dist/process_group.h"

namespace accrue::dist {

/// Starts MPI, unless the program did, and returns the group of all processes.
///
/// Errors:  ValueError when MPI finds another number of processes than `size` (0: unknown);
///          DistributedError when MPI fails.
std::shared_ptr<ProcessGroup> mpi_world(int size, const GroupOptions& options);

}  // namespace accrue::dist
