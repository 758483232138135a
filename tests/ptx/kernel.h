// Kernel: an entry of PTX as instructions for warps.
#pragma once

#include "accrue/tests/ptx/instruction.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace accrue::ptx {

/// Where the value of a register comes from that no instruction writes.
enum class Source : std::uint8_t {
  constant,
  parameters,  ///< the address of the first, plus `value`
  thread,
  threads,
  block_x,
  block_y,
  blocks_x,
  blocks_y
};

struct Preset {
  Source source = Source::constant;
  std::uint64_t value = 0;
  std::uint32_t at = 0;
  int width = 4;
};

/// An array in shared memory: [begin, begin + bytes).
struct SharedArray {
  std::size_t begin = 0, bytes = 0;
};

struct Kernel {
  std::vector<Instruction> code;
  std::vector<std::string> statements;  ///< of `code`
  std::vector<Preset> presets;
  std::size_t file_bytes = 0;  ///< the registers of a warp
  std::vector<std::size_t> parameter_offsets, parameter_sizes;
  std::size_t parameter_bytes = 0;
  std::vector<SharedArray> shared;  ///< with gaps between, which nothing may reach
  std::size_t dynamic_shared = 0;   ///< where the array begins that the launch asks for
  std::size_t shared_bytes = 0;     ///< without that and gaps
  std::size_t max_threads = 0;      ///< of a block
};

/// Reads the text of an entry.
///
/// Errors:  Error that quotes a statement that it does not know.
Kernel decode(std::string_view entry);

}  // namespace accrue::ptx
