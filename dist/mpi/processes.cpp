#include "accrue/dist/mpi/processes.h"

#include "accrue/dist/mpi/runtime.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace accrue::dist::mpi {
namespace {

bool exists(pid_t process) { return kill(process, 0) == 0 || errno != ESRCH; }

}  // namespace

Processes::Processes(MPI_Comm comm, MPI_Comm host) {
  struct Place {
    pid_t process = getpid();
    int host = 0;  ///< by its first rank
  };
  int rank = 0, size = 0;
  call("MPI_Comm_rank", [&] { return MPI_Comm_rank(comm, &rank); });
  call("MPI_Comm_size", [&] { return MPI_Comm_size(comm, &size); });
  Place mine;
  mine.host = rank;
  call("MPI_Bcast", [&] { return MPI_Bcast(&mine.host, 1, MPI_INT, 0, host); });
  std::vector<Place> places(static_cast<std::size_t>(size));
  call("MPI_Allgather", [&] {
    return MPI_Allgather(&mine, sizeof mine, MPI_BYTE, places.data(), sizeof mine, MPI_BYTE, comm);
  });
  for (const Place& place : places) {
    const bool is_seen = place.host == mine.host && exists(place.process);
    processes_.push_back(is_seen ? place.process : 0);
  }
}

bool Processes::is_dead(int rank) const noexcept {
  const pid_t process = processes_[static_cast<std::size_t>(rank)];
  return process != 0 && !exists(process);
}

}  // namespace accrue::dist::mpi
