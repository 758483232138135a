// What every process group must do, checked on each rank: run on self, on threads and under MPI.
#pragma once

#include "accrue/dist/process_group.h"

namespace accrue::test {

/// All collectives on all dtypes, over lengths and layouts; returns how many calls were checked.
int check_collectives(dist::ProcessGroup& group);

}  // namespace accrue::test
