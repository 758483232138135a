// A rank fails in a training run: what survivors say and how soon, their weights, the exit code,
// and what is left of the job.
#include "accrue/tests/bench/run.h"
#include "accrue/tests/tools/jobs.h"

#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>

using accrue::test::count;
using accrue::test::Outcome;
using accrue::test::run_job;
using accrue::test::run_jobs;

namespace {

struct Case {
  std::string failure, point;
  int ranks = 2, rank = 1;
  double timeout = 0;  ///< 0: ranks share memory and wait for a second
};

std::string command_of(const Case& c) {
  return "./accrue launch --num_processes " + std::to_string(c.ranks) + " " + ACCRUE_FAILING_RANK +
         " " + c.failure + " " + c.point + " " + std::to_string(c.rank) +
         (c.timeout > 0 ? " " + std::to_string(c.timeout) : "");
}

/// The hash of the weights after each step of a run of one rank, in which nothing fails.
const std::vector<std::string>& expected_hashes() {
  static const std::vector<std::string> hashes = [] {
    const Outcome outcome = run_job(ACCRUE_FAILING_RANK " none none 0");
    std::vector<std::string> found;
    for (int step = 0; step <= 3; ++step) {
      const std::string line = "rank 0 after step " + std::to_string(step) + ": ";
      const std::size_t at = outcome.output.find(line);
      REQUIRE(at != std::string::npos);
      found.push_back(outcome.output.substr(at + line.size(), 16));
    }
    return found;
  }();
  return hashes;
}

/// Where ranks are when one fails at a point.
struct Place {
  int steps = 0;            ///< whole ones that they have made
  std::string bucket = {};  ///< whose sum fails, as errors name it
};

const Place& place_of(const std::string& point) {
  static const std::map<std::string, Place> places = {{"model", {0}},
                                                      {"start", {0}},
                                                      {"forward", {1, "(step 1, bucket 0)"}},
                                                      {"sum", {1, "(step 1, bucket 0)"}},
                                                      {"later", {1, "(step 1, bucket 1)"}},
                                                      {"step", {2, "(step 2, bucket 0)"}},
                                                      {"end", {3}}};
  return places.at(point);
}

/// A stopped rank costs the deadline; others are noticed at once, on a busy machine within a
/// second.
double most_seconds(const Case& c) {
  if (c.failure != "stopped") return 1;
  return (c.timeout > 0 ? c.timeout : 1) + 0.5;
}

/// All weights are those of whole steps. Survivors end with the weights of the same one, in time.
void check_ranks(const Case& c, const std::string& output) {
  int ends = 0;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    int rank = 0, step = 0;
    char hash[17] = "";
    double seconds = 0;
    if (std::sscanf(line.c_str(), "rank %d waited %lf s", &rank, &seconds) == 2)
      CHECK((rank == c.rank || seconds <= most_seconds(c)));
    const bool is_end =
        std::sscanf(line.c_str(), "rank %d ends after step %d: %16s", &rank, &step, hash) == 3;
    if (!is_end &&
        std::sscanf(line.c_str(), "rank %d after step %d: %16s", &rank, &step, hash) != 3)
      continue;
    if (rank == c.rank && c.point == "model") continue;
    CHECK(hash == expected_hashes().at(static_cast<std::size_t>(step)));
    if (!is_end || rank == c.rank) continue;
    CHECK(step == place_of(c.point).steps);
    ++ends;
  }
  CHECK(ends == c.ranks - 1);
}

/// What is said of a failing rank: a line of each survivor holds it all, as may lines of that rank.
struct Said {
  std::string before, after;  ///< the rank's number
  int least = 0, most = 0;    ///< lines of the failing rank
  bool in_sum = true;         ///< lines name the bucket where there is one
};

/// Without `said`, ranks need not say anything.
void check_all(const std::string& kind,
               std::vector<Case> cases,
               int code,
               const std::optional<Said>& said) {
  if (std::getenv("ACCRUE_QUICK")) cases.resize((cases.size() + 8) / 9);
  std::vector<std::string> commands;
  for (const Case& c : cases) commands.push_back(command_of(c));
  const std::vector<Outcome> outcomes = run_jobs(commands);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(commands[i]);
    CAPTURE(outcomes[i].output);
    CHECK(outcomes[i].code == code);
    CHECK(outcomes[i].seconds_left < 2);
    if (!said) continue;
    const std::string part = said->before + std::to_string(cases[i].rank) + said->after;
    const int lines = count(outcomes[i].output, part) - (cases[i].ranks - 1);
    CHECK(lines >= said->least);
    CHECK(lines <= said->most);
    const std::string& bucket = place_of(cases[i].point).bucket;
    if (!bucket.empty() && said->in_sum)
      CHECK(count(outcomes[i].output, bucket) >= cases[i].ranks - 1);
    check_ranks(cases[i], outcomes[i].output);
  }
  MESSAGE(cases.size() << " cases: " << kind);
}

/// Every rank of 2, 3 and 4.
std::vector<Case> each_rank() {
  std::vector<Case> cases;
  for (const int ranks : {2, 3, 4}) {
    for (int rank = 0; rank < ranks; ++rank) cases.push_back({"", "", ranks, rank});
  }
  return cases;
}

const std::vector<std::string> kPoints = {"start", "forward", "sum", "later", "step", "end"};

/// Every rank at every point.
std::vector<Case> everywhere(const std::string& failure, const std::vector<std::string>& points) {
  std::vector<Case> cases;
  for (Case c : each_rank()) {
    c.failure = failure;
    for (const std::string& point : points) cases.emplace_back(c).point = point;
  }
  return cases;
}

/// Every rank once; failures and points take turns.
std::vector<Case> in_turn(const std::vector<std::string>& failures,
                          const std::vector<std::string>& points) {
  std::vector<Case> cases = each_rank();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].failure = failures[i % failures.size()];
    cases[i].point = points[i % points.size()];
  }
  return cases;
}

}  // namespace

TEST_CASE("tools.failure: survivors name a killed rank at once and the code is 75") {
  check_all(
      "killed", everywhere("killed", kPoints), 75, Said{"got rank ", " gone: its process died"});
}

TEST_CASE("tools.failure: survivors name a stopped rank after the deadline and the code is 75") {
  // mpirun wakes it to end it, and it may read in time that the group is broken.
  check_all("stopped",
            everywhere("stopped", {"start", "later", "step", "end"}),
            75,
            Said{"got nothing from rank ", " for call", 0, 1});
}

TEST_CASE("tools.failure: survivors name a rank that ended early, and the code is its own") {
  const std::vector<std::string> points = {"start", "forward", "step", "end"};
  const Said said{"got rank ", " gone: its process ended"};
  check_all("ended with 0", in_turn({"ended"}, points), 75, said);
  check_all("ended with 3", in_turn({"exits"}, points), 3, said);
  const Said threw{"got rank ", " gone: it"};  // threw an exception, or its process ended
  check_all("threw an exception", in_turn({"throws"}, points), 70, threw);
}

TEST_CASE("tools.failure: the code is that of the first rank that failed, whatever others return") {
  std::vector<std::string> commands;
  for (const std::string failure : {"killed", "exits"}) {
    for (const std::string point : {"start", "forward", "step"}) {
      for (const double timeout : {0, 60})
        commands.push_back("ACCRUE_TEST_SURVIVORS=9 " +
                           command_of({failure, point, 3, 1, timeout}));
    }
  }
  const std::vector<Outcome> outcomes = run_jobs(commands);
  for (std::size_t i = 0; i < commands.size(); ++i) {
    CAPTURE(commands[i]);
    CAPTURE(outcomes[i].output);
    CHECK(outcomes[i].code == (i < commands.size() / 2 ? 75 : 3));
    CHECK(count(outcomes[i].output, " waited ") == 2);
  }
}

TEST_CASE("tools.failure: a child that a rank forks may exit") {
  std::vector<std::string> commands;
  for (const std::string point : {"start", "forward", "step", "end"}) {
    for (const double timeout : {0, 60})
      commands.push_back("timeout 30 " + command_of({"forks", point, 2, 1, timeout}));
  }
  for (const Outcome& outcome : run_jobs(commands)) {
    CAPTURE(outcome.output);
    CHECK(outcome.code == 0);
    CHECK(count(outcome.output, " after step 3: " + expected_hashes().at(3) + "\n") == 2);
  }
}

TEST_CASE("tools.failure: all ranks say that their calls differ and the code is 76") {
  check_all(
      "other collectives",
      in_turn({"shape", "dtype", "operation", "root", "swapped"}, {"start", "forward", "end"}),
      76,
      Said{"rank ", ": call ", 1, 1, false});
}

TEST_CASE("tools.failure: all ranks say how their models differ and the code is 76") {
  check_all("other models",
            in_turn({"wide", "unbiased", "reordered"}, {"model"}),
            76,
            Said{"on rank ", "", 1, 1});
}

TEST_CASE("tools.failure: ranks that send messages name one that died, or is absent") {
  std::vector<Case> cases = in_turn({"killed"}, {"later", "forward"});
  for (Case& c : cases) c.timeout = 60;
  check_all("killed, in messages", cases, 75, Said{"got rank ", " gone: its process died"});
  cases = in_turn({"stopped"}, {"later", "forward"});
  for (Case& c : cases) c.timeout = 1;
  check_all("stopped, in messages", cases, 75, Said{"got nothing from rank ", " for call", 0, 1});
}

TEST_CASE("tools.failure: nothing is left when what looks after ranks is killed") {
  check_all("parent of a rank killed", in_turn({"orphaned"}, kPoints), 75, std::nullopt);
  check_all("mpirun killed", in_turn({"unattended"}, kPoints), 75, std::nullopt);
}

TEST_CASE("tools.failure: nothing but mpirun listens at a socket") {
  for (const int ranks : {2, 3, 4}) {
    const Outcome outcome = run_job(command_of({"listens", "end", ranks, ranks - 1}));
    CAPTURE(outcome.output);
    CHECK(outcome.code == 0);
    CHECK(count(outcome.output, "failing_rank listens at 0\n") == 1);
    CHECK(count(outcome.output, "accrue rank listens at 0\n") == 1);
    CHECK(count(outcome.output, "mpirun listens at ") == 1);
    CHECK(count(outcome.output, "accrue launch listens at 0\n") == 1);
  }
}
