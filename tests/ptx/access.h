// Loads, stores and atomic operations: each is looked up in the memory that the launch may reach.
#pragma once

#include "accrue/tests/ptx/instruction.h"

#include <string_view>

namespace accrue::ptx {

/// Sets execute, space and elements of "ld.global.v4.f32" and the like; false if it does not know
/// the instruction. A load with a register of 4 bytes where it needs 8 is refused by the caller.
bool find_access(std::string_view opcode, Instruction& it);

}  // namespace accrue::ptx
