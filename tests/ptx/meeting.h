// The instructions in which lanes of a warp meet: shuffles, votes and bar.warp.sync.
#pragma once

#include "accrue/tests/ptx/arithmetic.h"

#include <string>

namespace accrue::ptx {

/// Null if there is none. The last operand is the mask of the lanes that meet, which are the active
/// ones when the instruction runs.
const Form* find_meeting(const std::string& opcode);

}  // namespace accrue::ptx
