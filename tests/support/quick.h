// is_quick(): whether to test less, since sanitizers or the simulator make tests slow.
#pragma once

#include <cstdlib>

namespace accrue::test {

/// Whether the environment has ACCRUE_QUICK.
inline bool is_quick() { return std::getenv("ACCRUE_QUICK") != nullptr; }

}  // namespace accrue::test
