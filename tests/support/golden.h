// Where the golden files of the tests lie.
#pragma once

#include <filesystem>
#include <string>

namespace accrue::tests {

/// The path of a file under tests/golden.
inline std::string golden_path(const std::string& name) {
  return (std::filesystem::path(__FILE__).parent_path().parent_path() / "golden" / name).string();
}

}  // namespace accrue::tests
