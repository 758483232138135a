// A rank fails in a collective of the library: what survivors say, the exit code, and how soon.
#include "accrue/tests/bench/run.h"

#include <chrono>
#include <string>

using accrue::test::count;
using accrue::test::run;
using accrue::test::Run;

namespace {

/// Runs 2, 3 and 4 ranks of which rank 1 fails. Each other rank says `part` on one line; rank 1
/// never, maybe or always.
void check_failure(const std::string& failure,
                   int code,
                   const std::string& part,
                   int least_of_rank_1 = 0,
                   int most_of_rank_1 = 0) {
  using Clock = std::chrono::steady_clock;
  for (const int ranks : {2, 3, 4}) {
    CAPTURE(ranks);
    const Clock::time_point start = Clock::now();
    const Run result = run("accrue launch --num_processes " + std::to_string(ranks) + " " +
                           ACCRUE_FAILING_RANK + " " + failure + " 2>&1");
    CAPTURE(result.output);
    CHECK(result.code == code);
    const int lines = count(result.output, part) - (ranks - 1);
    CHECK(lines >= least_of_rank_1);
    CHECK(lines <= most_of_rank_1);
    CHECK(Clock::now() - start < std::chrono::seconds(10));
  }
}

}  // namespace

TEST_CASE("tools.failure: survivors name a killed rank and the code is 75") {
  check_failure("killed", 75, "got rank 1 gone: its process died");
}

TEST_CASE("tools.failure: survivors name a stopped rank after the deadline and the code is 75") {
  // mpirun wakes it to end it, and it may read in time that the group is broken.
  check_failure("stopped", 75, "got nothing from rank 1 for call 2", 0, 1);
}

TEST_CASE("tools.failure: survivors name a rank that ended early and the code is 75") {
  check_failure("ended", 75, "got rank 1 gone: its process ended");
}

TEST_CASE("tools.failure: all ranks say that they disagree and the code is 76") {
  check_failure("differs", 76, "all ranks must make the same call, got rank 0", 1, 1);
}
