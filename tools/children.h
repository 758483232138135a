// The child processes of this one, also those that it adopted.
#pragma once

#include <sys/types.h>

#include <vector>

namespace accrue::tools {

std::vector<pid_t> children_of(pid_t parent);

/// Makes this process the parent of its descendants when theirs ends before them.
void adopt_orphans();

/// Kills all children and what they leave behind. Gives up on those that outlast 1.5 s.
void kill_children();

}  // namespace accrue::tools
