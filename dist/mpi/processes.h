// Processes: which ranks of this host are alive.
#pragma once

#include <mpi.h>
#include <sys/types.h>

#include <vector>

namespace accrue::dist::mpi {

/// The processes of the ranks, as far as this one sees them. Those of other hosts, and those that
/// containers hide, are never known to be dead.
class Processes {
 public:
  /// A collective call: `comm` holds all ranks, `host` those of this host.
  Processes(MPI_Comm comm, MPI_Comm host);

  bool is_dead(int rank) const noexcept;

 private:
  std::vector<pid_t> processes_;  ///< 0: not seen
};

}  // namespace accrue::dist::mpi
