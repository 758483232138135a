// Launch: what the environment says about the processes of this job.
#pragma once

namespace accrue::dist {

struct Launch {
  bool by_mpi = false;  ///< mpirun or srun with PMI started this process
  int size = 1;         ///< processes; 0 where the launcher does not say
};

/// Reads the variables of Open MPI, PMI, Slurm and torchrun.
///
/// Errors:  ValueError that says what to type where a launcher without MPI started several
///          processes, or variables contradict each other: never a silent world of one.
Launch read_launch();

}  // namespace accrue::dist
