// mpi_world() of a build without MPI, whose programs run alone.
#include "accrue/core/error.h"
#include "accrue/dist/mpi/mpi_world.h"

namespace accrue::dist {

std::shared_ptr<ProcessGroup> mpi_world(int size, const GroupOptions&) {
  fail<ValueError>("[world] a build without MPI runs one process, got ",
                   size,
                   " from the launcher; configure with ACCRUE_PROCESSES=ON");
}

}  // namespace accrue::dist
