// env: what a bug report needs.
#include "accrue/bench/support/options.h"
#include "accrue/bench/support/program.h"
#include "accrue/core/device_backend.h"
#include "accrue/core/error.h"
#include "accrue/kernels/cpu/isa.h"
#include "accrue/kernels/cpu/parallel.h"
#include "accrue/tools/commands.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

namespace accrue::tools {
namespace {

/// What stands behind `key` and `separator` in the first line of the file that begins with it.
std::string value_in(const char* file, std::string_view key, char separator) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t start = line.find_first_not_of(" \"", line.find(separator) + 1);
    const std::size_t end = line.find_last_not_of(" \"");
    return start == std::string::npos ? "" : line.substr(start, end + 1 - start);
  }
  return "unknown";
}

std::string mpi_version() {
  std::FILE* const pipe = popen("mpirun --version 2> /dev/null", "r");
  char line[200] = {};
  if (!pipe) return "unknown";
  std::string version = std::fgets(line, sizeof line, pipe) ? line : "none: no mpirun in PATH";
  pclose(pipe);
  return version.substr(0, version.find('\n'));
}

std::string set_variables() {
  std::string found;
  for (const char* name : {"ACCRUE_ISA",
                           "ACCRUE_NUM_THREADS",
                           "ACCELERATE_MIXED_PRECISION",
                           "ACCELERATE_TORCH_DEVICE"}) {
    const char* const value = std::getenv(name);
    if (value) found += text(found.empty() ? "" : ", ", name, "=", value);
  }
  return found.empty() ? "none" : found;
}

}  // namespace

int environment(int argc, char** argv) {
  bench::Options options("Prints what a bug report needs.");
  options.parse(argc, argv);
  utsname system = {};
  uname(&system);
  const auto print = [](std::string_view name, const auto& value) {
    fmt::print("{:<10} {}\n", name, value);
  };
  print("accrue", ACCRUE_VERSION);
  print("compiler", __VERSION__);
  print("system",
        fmt::format("{}, {} {} {}",
                    value_in("/etc/os-release", "PRETTY_NAME", '='),
                    system.sysname,
                    system.release,
                    system.machine));
  print("CPU", value_in("/proc/cpuinfo", "model name", ':'));
  print("cores", std::thread::hardware_concurrency());
  print("kernels",
        fmt::format("{}, of this build and CPU the best is {}",
                    kernels::name_of(kernels::current_isa()),
                    kernels::name_of(kernels::best_isa())));
  print("threads", kernels::num_threads());
  const int devices = cuda_device_count();
  print("CUDA", devices > 0 ? text(devices, " devices") : "none: " + why_no_cuda());
  print("MPI", mpi_version());
  print("variables", set_variables());
  return bench::kDone;
}

}  // namespace accrue::tools
