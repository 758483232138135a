#include "accrue/dist/launcher.h"

#include "accrue/core/error.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace accrue::dist {
namespace {

bool is_set(const char* name) { return std::getenv(name) != nullptr; }

/// The variable's number; nothing when it is not set.
std::optional<int> number(const char* name) {
  const char* value = std::getenv(name);
  if (!value) return std::nullopt;
  int result = -1;
  const char* end = value + std::strlen(value);
  const auto [stop, error] = std::from_chars(value, end, result);
  ACCRUE_CHECK(error == std::errc() && stop == end && result >= 0,
               ValueError,
               "world",
               name,
               " must be a number, got '",
               value,
               "'; correct or unset it");
  return result;
}

[[noreturn]] void refuse(const std::string& got, int size) {
  fail<ValueError>("[world] several processes must be started through MPI, got ",
                   got,
                   " without it; type accrue launch --num_processes ",
                   size,
                   " PROGRAM, mpirun -n ",
                   size,
                   " PROGRAM, or srun --mpi=pmix -n ",
                   size,
                   " PROGRAM");
}

void check_torchrun() {
  const std::optional<int> rank = number("RANK"), size = number("WORLD_SIZE");
  if (!rank && !size) return;
  ACCRUE_CHECK(rank && size,
               ValueError,
               "world",
               "RANK and WORLD_SIZE must be set together, got ",
               rank ? "RANK" : "WORLD_SIZE",
               " alone; unset it, or start through accrue launch or mpirun");
  if (*size != 1 || *rank != 0) refuse(text("RANK=", *rank, " and WORLD_SIZE=", *size), *size);
}

}  // namespace

Launch read_launch() {
  const std::optional<int> open_mpi = number("OMPI_COMM_WORLD_SIZE"), pmi = number("PMI_SIZE");
  const bool by_mpi = open_mpi || pmi || is_set("PMIX_RANK") || is_set("PMI_RANK");
  if (!by_mpi) {
    check_torchrun();
    const int tasks = number("SLURM_STEP_NUM_TASKS").value_or(1);
    if (tasks > 1) refuse(text("SLURM_STEP_NUM_TASKS=", tasks), tasks);
    return {};
  }
  const int size = open_mpi ? *open_mpi : pmi.value_or(0);
  const std::optional<int> world = number("WORLD_SIZE");
  ACCRUE_CHECK(!world || size == 0 || *world == size,
               ValueError,
               "world",
               "WORLD_SIZE must be the number of MPI processes, ",
               size,
               ", got ",
               *world,
               "; unset RANK and WORLD_SIZE");
  return {true, size};
}

}  // namespace accrue::dist
