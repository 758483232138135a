#include "accrue/tests/support/golden.h"

namespace accrue::tests {

// The folder comes from CMake and to this file alone: __FILE__ may be relative to the build folder
// (ccache), and a definition for all tests would keep clones from sharing the compiler cache.
std::string golden_path(const std::string& name) { return ACCRUE_GOLDEN_DIR "/" + name; }

}  // namespace accrue::tests
