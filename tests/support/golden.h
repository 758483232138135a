// Where the golden files of the tests lie.
#pragma once

#include <string>

namespace accrue::tests {

/// The path of a file under tests/golden.
std::string golden_path(const std::string& name);

}  // namespace accrue::tests
