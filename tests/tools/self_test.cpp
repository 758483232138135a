// accrue test: it trains the same bits on any number of processes, and notices when it does not.
#include "accrue/tests/tools/fake_mpirun.h"

#include <string>

using accrue::test::count;
using accrue::test::FakeMpirun;
using accrue::test::run;
using accrue::test::Run;

TEST_CASE("tools.self: training has the same bits on 1 process and on several") {
  for (const int processes : {2, 3, 4, 9}) {
    CAPTURE(processes);
    const Run result = run("accrue test --num_processes " + std::to_string(processes));
    CHECK(result.code == 0);
    CHECK(count(result.output, " ok\n") == (processes == 9 ? 5 : 6));
    CHECK(count(result.output, "   " + std::to_string(processes) + " processes") ==
          (processes == 9 ? 2 : 3));
    CHECK(count(result.output, "WRONG") == 0);
    CHECK(count(result.output, "\nthe same bits everywhere\n") == 1);
  }
}

TEST_CASE("tools.self: processes that do not find each other fail the test") {
  const Run result = FakeMpirun("while [ $1 != rank ]; do shift; done; shift 2; exec \"$@\"")
                         .run("accrue test --num_processes 2");
  CHECK(result.code == 1);
  CHECK(count(result.output, "accrue: the world must have 2 processes, got 1\n") == 1);
  CHECK(count(result.output, "none             WRONG\n") == 3);
  CHECK(count(result.output, "the job ended with exit code 1\n") == 1);
}

TEST_CASE("tools.self: one other bit fails the test") {
  const Run result =
      FakeMpirun("case \"$*\" in *' train 1') exec $REAL \"$@\" ;; esac; $REAL \"$@\" | tr 0-8 1-9")
          .run("accrue test --num_processes 2");
  CHECK(result.code == 1);
  CHECK(count(result.output, " ok\n") == 3);
  CHECK(count(result.output, " WRONG\n") == 3);
  CHECK(count(result.output, "\nNOT the same bits everywhere\n") == 1);
}

TEST_CASE("tools.self: more processes than lanes are refused") {
  const Run result = run("accrue test --num_processes 65 2>&1");
  CHECK(result.code == 78);
  CHECK(result.output == "accrue: the test can train on at most 64 processes, got 65\n");
}
