// The proofs of mixed precision, run as programs.
#include "accrue/tests/bench/run.h"

#include <cstdlib>
#include <string>
#include <vector>

namespace {

using accrue::test::count;
using accrue::test::run;
using accrue::test::Run;

void check_proof(const std::string& command) {
  CAPTURE(command);
  const Run result = run(command);
  CHECK(result.code == 0);
  CHECK(count(result.output, "DIFFER") == 0);
  const std::size_t last = result.output.rfind('\n', result.output.size() - 2);
  MESSAGE(command, ": ", result.output.substr(last + 1));
}

}  // namespace

TEST_CASE("bench.mixed_precision: losses and examples come close to float32, ranks skip together") {
  check_proof("mixed_precision");
}

TEST_CASE("bench.mixed_precision: in both modes splits and topologies equal the reference model") {
  std::vector<std::string> modes{"fp16", "bf16"};
  if (std::getenv("ACCRUE_QUICK")) {
    modes.pop_back();
    MESSAGE("left out under sanitizers: bf16, which does what fp16 does but scale");
  }
  for (const std::string& mode : modes) {
    const std::string option = std::string(" --quick --mixed_precision ") + mode;
    check_proof("accumulation_invariance" + option);
    check_proof("topology_invariance --only_threads" + option);
  }
}

TEST_CASE("bench.mixed_precision: an unknown mode is refused") {
  CHECK(run("accumulation_invariance --mixed_precision fp8 2> /dev/null").code == 64);
  CHECK(accrue::test::shell("ACCELERATE_MIXED_PRECISION=half ./docs_causal_lm 2> /dev/null").code ==
        78);
}
