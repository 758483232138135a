// The world of a process: what launchers' variables mean, and ranks that are threads.
#include "accrue/dist/world.h"

#include "accrue/dist/threads.h"
#include "accrue/tests/support/doctest.h"

#include <cstdlib>
#include <map>

using namespace accrue;
using namespace accrue::dist;

namespace {

using Variables = std::map<std::string, std::string>;

/// The environment holds these launchers' variables and no others while this lives.
class Environment {
 public:
  explicit Environment(const Variables& variables) {
    for (const char* name : {"RANK",
                             "WORLD_SIZE",
                             "OMPI_COMM_WORLD_SIZE",
                             "PMI_SIZE",
                             "PMI_RANK",
                             "PMIX_RANK",
                             "SLURM_STEP_NUM_TASKS"}) {
      if (const char* value = std::getenv(name)) saved_[name] = value;
      unsetenv(name);
      const auto it = variables.find(name);
      if (it != variables.end()) setenv(name, it->second.c_str(), 1);
      names_.emplace_back(name);
    }
  }
  ~Environment() {
    for (const std::string& name : names_) unsetenv(name.c_str());
    for (const auto& [name, value] : saved_) setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::string> names_;
  Variables saved_;
};

std::string refusal(const Variables& variables) {
  const Environment environment(variables);
  try {
    world();
  } catch (const ValueError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("dist.world: several processes without MPI are refused with what to type") {
  CHECK(refusal({{"RANK", "1"}, {"WORLD_SIZE", "2"}}) ==
        "[world] several processes must be started through MPI, got RANK=1 and WORLD_SIZE=2 "
        "without it; type accrue launch --num_processes 2 PROGRAM, mpirun -n 2 PROGRAM, or "
        "srun --mpi=pmix -n 2 PROGRAM");
  CHECK(refusal({{"SLURM_STEP_NUM_TASKS", "4"}}) ==
        "[world] several processes must be started through MPI, got SLURM_STEP_NUM_TASKS=4 without "
        "it; type accrue launch --num_processes 4 PROGRAM, mpirun -n 4 PROGRAM, or srun "
        "--mpi=pmix -n 4 PROGRAM");
}

TEST_CASE("dist.world: variables that contradict each other are refused") {
  CHECK(refusal({{"RANK", "0"}}) ==
        "[world] RANK and WORLD_SIZE must be set together, got RANK alone; unset it, or start "
        "through accrue launch or mpirun");
  CHECK(refusal({{"WORLD_SIZE", "2"}}).find("got WORLD_SIZE alone") != std::string::npos);
  CHECK(refusal({{"RANK", "1"}, {"WORLD_SIZE", "1"}}) != "");
  CHECK(refusal({{"RANK", "x"}, {"WORLD_SIZE", "1"}}) ==
        "[world] RANK must be a number, got 'x'; correct or unset it");
  CHECK(refusal({{"OMPI_COMM_WORLD_SIZE", "2"}, {"WORLD_SIZE", "4"}}) ==
        "[world] WORLD_SIZE must be the number of MPI processes, 2, got 4; unset RANK and "
        "WORLD_SIZE");
}

TEST_CASE("dist.world: a rank that is a thread finds its own group") {
  run_ranks(3, [](ProcessGroup& group) {
    CHECK(world().get() == &group);
    CHECK_THROWS_WITH_AS(
        init({}),
        "[init] must come before the first use of world(), got a world of 3; call it first in main",
        StateError);
  });
}

TEST_CASE("dist.world: a process started alone is a world of one, once and for all") {
  const Environment environment({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  const auto group = init({.timeout = 5});
  CHECK(group->backend() == std::string("self"));
  CHECK(group->timeout() == 5);
  CHECK(world() == group);
  CHECK_THROWS_AS(init({}), StateError);
}
