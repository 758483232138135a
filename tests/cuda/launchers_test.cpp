// The table of CUDA kernels: which are missing.
#include "accrue/kernels/cuda/launchers.h"

#include "accrue/tests/support/doctest.h"

#include <string>
#include <vector>

using namespace accrue;
using namespace accrue::kernels;

namespace {

/// Appends the name of the slot to `names` if it is empty.
template <class Args>
void note(const LaunchTable& table, const char* name, std::vector<std::string>& names) {
  const LaunchSlot<Args>& slot = table;
  if (slot.launch == nullptr) names.push_back(name);
}

}  // namespace

TEST_CASE("cuda.launchers: every kernel of the CPU exists on CUDA, at least for float32") {
  const LaunchTable& table = cuda::launchers();
  std::vector<std::string> missing, of_double;
  int count = 0;
#define ACCRUE_ARGS(Args) note<Args>(table, #Args, missing), ++count;
#define ACCRUE_ARGS_OF(Args)                         \
  note<Args<float>>(table, #Args, missing), ++count; \
  note<Args<double>>(table, #Args, of_double);
#define ACCRUE_ARGS_RETURNING(R, Args) note<Args>(table, #Args, missing), ++count;
#include "accrue/kernels/kernels.def"
  CHECK(missing == std::vector<std::string>{});
  std::string names;  // float64 is for gradient checks, which run on the CPU
  for (const std::string& name : of_double) names += " " + name;
  MESSAGE(count, " kernels, these without float64:", names);
}
