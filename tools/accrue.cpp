// accrue: the command that starts programs on several processes and looks after them.
#include "accrue/bench/support/program.h"
#include "accrue/core/error.h"
#include "accrue/tools/commands.h"

#include <cstdio>
#include <string_view>

using namespace accrue;

namespace {

constexpr const char* kHelp =
    "usage: accrue COMMAND [OPTIONS]\n"
    "\n"
    "  launch   start a program on several processes\n"
    "  config   read, change and write settings in Accelerate's YAML\n"
    "  env      print what a bug report needs\n"
    "  test     train on several processes and compare the bits\n"
    "\n"
    "accrue COMMAND --help lists the options of a command, accrue --version says which this is.\n";

int run(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "launch") return tools::launch(argc - 1, argv + 1);
  if (command == "config") return tools::configure(argc - 1, argv + 1);
  if (command == "env") return tools::environment(argc - 1, argv + 1);
  if (command == "test") return tools::self_test(argc - 1, argv + 1);
  if (command == "train") return tools::train(argc - 1, argv + 1);
  if (command == "rank") return tools::rank(argc - 1, argv + 1);
  if (command == "--help" || command == "-h" || command == "help") {
    std::fputs(kHelp, stdout);
    return bench::kDone;
  }
  if (command == "--version") {
    std::puts("accrue " ACCRUE_VERSION);
    return bench::kDone;
  }
  throw bench::ProgramEnd{
      bench::kUsage,
      command.empty()
          ? "give a command; accrue --help lists them"
          : text("there is no command '", command, "'; accrue --help lists the commands")};
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(run, argc, argv); }
