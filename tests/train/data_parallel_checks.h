// What DistributedDataParallel must do on every process group.
#pragma once

#include "accrue/dist/process_group.h"

namespace accrue::test {

void check_averages(dist::ProcessGroup& group);
void check_no_sync(dist::ProcessGroup& group);
void check_buffers(dist::ProcessGroup& group);
void check_failures(dist::ProcessGroup& group);

}  // namespace accrue::test
