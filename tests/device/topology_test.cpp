// topology_invariance on simulated devices: ranks as threads and as processes.
#include "accrue/tests/bench/run.h"

#include <string>

using namespace accrue::test;

TEST_CASE("device.topology: every topology equals the reference model on devices") {
  const Run result = run("topology_invariance --quick --device cuda");
  CHECK(result.code == 0);
  CHECK(count(result.output, "DIFFERS") == 0);
  CHECK(count(result.output, "Ranks as") == 2);  // threads, processes
  CHECK(count(result.output, " refused, 0 differ") == 2 * 3);
  const std::size_t last = result.output.rfind('\n', result.output.size() - 2);
  MESSAGE(result.output.substr(last + 1));
}
