// The instructions that compute lane by lane, by their PTX names.
#pragma once

#include "accrue/tests/ptx/instruction.h"

#include <string>
#include <vector>

namespace accrue::ptx {

struct Form {
  Execute execute = nullptr;
  std::vector<int> widths;  ///< bytes per lane of result and operands
};

/// Null if there is none. "pack" and "unpack" stand for the mov of 8 bytes that has two registers
/// on its right and on its left.
const Form* find_form(const std::string& opcode);

}  // namespace accrue::ptx
