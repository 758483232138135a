// world: the group of all ranks of this job.
#pragma once

#include "accrue/dist/process_group.h"

namespace accrue::dist {

/// Finds out how this process was started and joins its job: the processes of mpirun, of srun or of
/// accrue launch, else a group of one. Processes of one host meet in shared memory.
///
/// MPI starts here and nowhere else, so a program that is started alone never touches it. It ends
/// with the process, unless a group is broken: the launcher then ends what is left of the job.
///
/// Errors:  ValueError that says what to type where several processes were started without MPI or
///          variables contradict each other; StateError when world() exists already.
std::shared_ptr<ProcessGroup> init(const GroupOptions& options);

/// The group of all ranks: in run_ranks() its threads, else what init() made, which world() calls
/// with the default options when nobody has. Errors: as init().
std::shared_ptr<ProcessGroup> world();

}  // namespace accrue::dist
