// thread_world: the group of a thread that is a rank.
#pragma once

#include "accrue/dist/process_group.h"

namespace accrue::dist {

/// What world() returns on this thread; null unless run_ranks() started it.
std::shared_ptr<ProcessGroup>& thread_world();

}  // namespace accrue::dist
