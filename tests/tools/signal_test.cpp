// SIGTERM and SIGINT end training after the same step on all ranks, whoever gets them.
#include "accrue/tests/bench/run.h"
#include "accrue/tests/tools/jobs.h"

#include <chrono>
#include <csignal>

using accrue::test::count;
using accrue::test::Outcome;
using accrue::test::run_jobs;

namespace {

struct Case {
  int ranks = 1, signal = SIGTERM, sender = 0;
  std::string target = {};
};

std::vector<Outcome> run_cases(const std::vector<Case>& cases) {
  std::vector<std::string> commands;
  for (const Case& c : cases) {
    commands.push_back("./accrue launch --num_processes " + std::to_string(c.ranks) + " " +
                       ACCRUE_STOPPING_RANK + " " + std::to_string(c.signal) + " " +
                       std::to_string(c.sender) + " " + c.target);
  }
  return run_jobs(commands);
}

}  // namespace

TEST_CASE("tools.signal: a signal to the launcher or to one rank stops all after the same step") {
  std::vector<Case> cases;
  for (int ranks = 1; ranks <= 3; ++ranks) {
    for (const int signal : {SIGTERM, SIGINT}) {
      cases.push_back({ranks, signal, ranks - 1, "launcher"});
      for (int rank = 0; rank < ranks; ++rank) cases.push_back({ranks, signal, rank, "itself"});
    }
  }
  const std::vector<Outcome> outcomes = run_cases(cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string& output = outcomes[i].output;
    CAPTURE(cases[i].ranks);
    CAPTURE(cases[i].signal);
    CAPTURE(cases[i].target);
    CAPTURE(output);
    CHECK(outcomes[i].code == 75);
    CHECK(outcomes[i].seconds_left == 0);
    const std::string stops = " stops after step ";
    const std::size_t at = output.find(stops);
    REQUIRE(at != std::string::npos);
    const int step = std::stoi(output.substr(at + stops.size()));
    CHECK(step >= 5);
    CHECK(step < 100);
    CHECK(count(output, stops + std::to_string(step) + "\n") == cases[i].ranks);
  }
  MESSAGE(cases.size() << " cases");
}

TEST_CASE("tools.signal: the example says after which step it was interrupted") {
  const std::string launch =
      "./accrue launch --num_processes 2 ../examples/char_lm --text " ACCRUE_GOLDEN
      "/../../LICENSE --context 16 --layers 1 --embed_dim 16 --steps 1000000";
  // The first step is on the screen when the signal comes.
  const std::string script = "exec 3< <(" + launch +
                             " 2>&1 & echo $!; wait $!; echo code $?); read -u 3 pid; "
                             "while read -r -u 3 line; do echo $line; case $line in "
                             "step*) test $pid && kill $pid; pid= ;; esac; done";
  const Outcome outcome = accrue::test::run_job("bash -c '" + script + "'");
  CAPTURE(outcome.output);
  CHECK(count(outcome.output, "code 75\n") == 1);
  const std::string says = "char_lm: interrupted after step ";
  const std::size_t at = outcome.output.find(says);
  REQUIRE(at != std::string::npos);
  CHECK(count(outcome.output, outcome.output.substr(at, outcome.output.find(';', at) - at)) == 2);
}

TEST_CASE("tools.signal: a second signal ends ranks that do not ask for the first") {
  const auto start = std::chrono::steady_clock::now();
  for (const Outcome& outcome : run_cases({{2, SIGTERM, 1, "deaf"}, {3, SIGINT, 0, "deaf"}})) {
    CAPTURE(outcome.output);
    CHECK(outcome.code == 75);
    CHECK(outcome.seconds_left == 0);
    CHECK(count(outcome.output, "stops") == 0);
  }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
}
