// A rank is gone between two collectives: the others must name it at once, far from their deadline.
//
// mpi_dead killed: it kills itself; mpirun needs --enable-recovery, which lets survivors live.
// mpi_dead ended: it returns from main. In messages where ACCRUE_TEST_MESSAGES is set.
#include "accrue/dist/world.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

using namespace accrue;

int main(int, char** argv) {
  const bool ends = argv[1] == std::string("ended");
  const auto group =
      dist::init({.timeout = 60, .shared_memory = !std::getenv("ACCRUE_TEST_MESSAGES")});
  group->barrier();
  if (group->rank() == 1) return ends ? 0 : std::raise(SIGKILL);
  const auto start = std::chrono::steady_clock::now();
  std::string said;
  try {
    Tensor tensor = Tensor::zeros({3});
    group->all_reduce(tensor);
  } catch (const DistributedError& error) {
    said = error.what();
  }
  const auto waited = std::chrono::steady_clock::now() - start;
  const std::string wanted = text(
      "[all_reduce] all ranks must come to call 2, all_reduce(sum) of 3 float32, got rank 1 "
      "gone: its process ",
      ends ? "ended" : "died",
      "; make all ranks issue the same collectives");
  const bool is_named = said == wanted && waited < std::chrono::seconds(5);
  std::printf("rank %d: %s\n", group->rank(), is_named ? "named" : said.c_str());
  return is_named ? 0 : 1;
}
