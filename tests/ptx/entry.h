// Entry: a kernel as PTX text, and where it comes from: nvcc's container in the program itself.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace accrue::ptx {

/// A parameter or a shared array.
struct Variable {
  std::string name;
  std::size_t bytes = 0, alignment = 1;
};

struct Entry {
  std::vector<Variable> parameters, shared;
  std::map<std::string, int> widths;  ///< bytes per lane of registers, by their name without number
  std::size_t max_threads = 1024;     ///< of a block
  std::vector<std::string> statements;  ///< without semicolon; labels end with a colon
};

/// The PTX for sm_<architecture> in a container (fatbin, undocumented: see
/// tests/cuda/device_code.py).
///
/// Errors:  Error if it has none.
std::string find_ptx(const std::byte* container, std::uint32_t architecture);

/// The kernels of a translation unit, by their mangled names.
std::map<std::string, std::string> split_entries(std::string_view ptx);

/// Reads the text of one kernel.
///
/// Errors:  Error that quotes a declaration that it does not know.
Entry parse_entry(std::string_view text);

}  // namespace accrue::ptx
