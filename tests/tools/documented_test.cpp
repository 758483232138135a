// The documented programs on several processes, as the documentation starts them.
#include "accrue/tests/bench/run.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using accrue::test::count;
using accrue::test::run;
using accrue::test::Run;

namespace {

std::vector<std::string> lines_of(std::istream&& text) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> golden(const std::string& name) {
  return lines_of(std::ifstream(ACCRUE_GOLDEN "/docs/" + name));
}

Run launch(int processes, const std::string& program) {
  return run("accrue launch --num_processes " + std::to_string(processes) + " ../bench/" + program);
}

}  // namespace

TEST_CASE("tools.documented: causal_lm on two devices prints the documentation") {
  const std::string program =
      "docs_causal_lm --gradient_accumulation_steps 2 --per_device_batch_size 4";
  std::vector<std::string> lines = lines_of(std::istringstream(launch(2, program).output));
  std::vector<std::string> expected = golden("causal_lm_2x2x4.txt");
  REQUIRE(!expected.empty());
  std::sort(lines.begin(), lines.end());  // of two devices, in any order
  std::sort(expected.begin(), expected.end());
  CHECK(lines == expected);
  CHECK(count(launch(2, program + " --hex").output, "hex 3e58cc50 3ea26d44\n") == 3);
}

TEST_CASE("tools.documented: causal_lm has one row of bits for all processes and micro-batches") {
  const int splits[][2] = {{1, 16}, {1, 4}, {2, 4}, {2, 1}, {3, 2}, {4, 4}, {4, 1}};
  for (const auto& [processes, samples] : splits) {
    CAPTURE(processes);
    CAPTURE(samples);
    const Run result = launch(processes,
                              "docs_causal_lm --hex --lanes 16 --dealing contiguous "
                              "--global_batch_size 16 --num_samples 16 --per_device_batch_size " +
                                  std::to_string(samples));
    CHECK(result.code == 0);
    CHECK(count(result.output, "hex 3e58cc50 3ea26d44\n") == processes + 1);
    CHECK(count(result.output, "hex ") == processes + 1);
  }
}

TEST_CASE("tools.documented: gather_for_metrics on two devices prints the documentation") {
  std::vector<std::string> lines =
      lines_of(std::istringstream(launch(2, "docs_gather_for_metrics").output));
  std::stable_sort(
      lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a[0] < b[0]; });
  REQUIRE(lines.size() == 12);
  CHECK(lines == golden("gather_for_metrics.txt"));
}

TEST_CASE("tools.documented: plain mpirun gives the bits of accrue launch") {
  const Run result = accrue::test::shell(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 2 "
      "../bench/docs_causal_lm --hex");
  CHECK(result.code == 0);
  CHECK(count(result.output, "hex 3e58cc50 3ea26d44\n") == 3);
}

TEST_CASE("tools.documented: variables that contradict mpirun are refused") {
  const Run result = accrue::test::shell(
      "RANK=0 WORLD_SIZE=3 ./accrue launch --num_processes 2 ../bench/docs_causal_lm 2>&1");
  CHECK(result.code == 78);
  CHECK(count(result.output,
              "docs_causal_lm: [world] WORLD_SIZE must be the number of MPI processes, 2, got 3; "
              "unset RANK and WORLD_SIZE\n") >= 1);
}

TEST_CASE("tools.documented: several processes that no MPI started are told what to type") {
  const std::string program = "../bench/docs_causal_lm 2>&1";
  const auto message = [](const std::string& got) {
    return "docs_causal_lm: [world] several processes must be started through MPI, got " + got +
           " without it; type accrue launch --num_processes 2 PROGRAM, mpirun -n 2 PROGRAM, or "
           "srun --mpi=pmix -n 2 PROGRAM\n";
  };
  const Run torchrun = accrue::test::shell("RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 " + program);
  CHECK(torchrun.code == 78);
  CHECK(torchrun.output == message("RANK=0 and WORLD_SIZE=2"));
  const Run slurm = accrue::test::shell("SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 " + program);
  CHECK(slurm.code == 78);
  CHECK(slurm.output == message("SLURM_STEP_NUM_TASKS=2"));
}
