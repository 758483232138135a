// A rank does what its argument says while the others wait for it in a collective of the library.
#include "accrue/bench/support/program.h"
#include "accrue/dist/world.h"

#include <csignal>
#include <string_view>

using namespace accrue;

namespace {

int run(int, char** argv) {
  const auto group = dist::init({.timeout = 1});
  const std::string_view failure = argv[1];
  Tensor tensor = Tensor::zeros({3});
  group->barrier();
  if (group->rank() == 1) {
    if (failure == "killed") std::raise(SIGKILL);
    if (failure == "stopped") std::raise(SIGSTOP);
    if (failure == "differs") group->broadcast(tensor, 0);
    if (failure == "ended") return bench::kDone;
  }
  group->all_reduce(tensor);
  return bench::kDone;
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(run, argc, argv); }
