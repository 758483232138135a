// The simulator finds every planted bug and is silent about the clean twins.
#include "accrue/core/config.h"
#include "accrue/kernels/cpu/float_mode.h"
#include "accrue/kernels/cuda/platform.h"
#include "accrue/kernels/simt/machine.h"
#include "accrue/tests/simt/planted_bugs.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/simt_check.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

using namespace accrue;
using namespace accrue::test;

namespace {

/// Says where the kernel was; the default action follows. Takes the place of doctest's.
void report_signal(int number) {
  const std::string line = "Signal in " + simt::machine().whereabouts() + ".\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
  std::signal(number, SIG_DFL);
}

/// Calls examine() in a process of its own, which a sanitizer may end. Returns all it wrote to
/// stderr, then what it found or how it died.
template <class Examine>
std::string apart(const Examine& examine) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    std::signal(SIGSEGV,
                kThreadSanitizer ? SIG_DFL : report_signal);  // it forbids std::string there
    const std::string found = examine();
    const auto written = write(STDERR_FILENO, found.data(), found.size());
    _exit(written == std::ssize(found) ? 0 : 1);
  }
  close(ends[1]);
  std::string output;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    output.append(buffer, static_cast<std::size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) output += text("died of signal ", WTERMSIG(status));
  return output;
}

const char* found_here(const PlantedBug& bug) {
  if (kAddressSanitizer) return bug.found_asan;
  return kThreadSanitizer ? bug.found_race : bug.found_plain;
}

std::string presets_of(const PlantedBug& bug) {
  return text(bug.found_plain ? " simulated" : "",
              bug.found_asan ? " simulated-asan" : "",
              bug.found_race ? " simulated-race" : "");
}

bool contains(const std::string& whole, const std::string& part) {
  return whole.find(part) != std::string::npos;
}

ACCRUE_KERNEL(1)
void halve(float* x) { x[0] = x[0] / 2; }

}  // namespace

TEST_CASE("simt.self: kernels do not know the float mode of the host's thread") {
  DeviceFloats x({1e-40F});
  std::thread([&] {                                                // with fibers of its own
    kernels::set_float_mode(kernels::kDefaultFloatMode | 0x8040);  // subnormals become zeros
    kernels::cuda::launch({.name = "halve", .grid_x = 1, .threads = 1}, halve, x.data());
  })
      .join();
  CHECK(x.values()[0] == 1e-40F / 2);
}

TEST_CASE("simt.self: planted bugs are found and named, their clean twins are silent") {
  int num_found = 0, num_skipped = 0;
  auto bugs = bugs_of_order();
  for (const PlantedBug& bug : bugs_of_memory()) bugs.push_back(bug);
  const std::string reported = apart([&] {  // at once: under sanitizers a process starts slowly
    std::string all;
    for (const PlantedBug& bug : bugs) {
      const std::string found = bug.examine(false);
      if (!found.empty()) all += text("the twin of ", bug.name, ": ", found, "\n");
    }
    return all;
  });
  CHECK(reported == "");
  for (const PlantedBug& bug : bugs) {
    CAPTURE(std::string(bug.name));
    const char* const expected = found_here(bug);
    if (expected == nullptr) {
      MESSAGE(std::string(bug.name), ": not visible in this build; found by", presets_of(bug));
      ++num_skipped;
      continue;
    }
    const std::string found = apart([&] { return bug.examine(true); });
    CHECK_MESSAGE(contains(found, expected), found);
    ++num_found;
  }
  CHECK(num_found >= 16);
  MESSAGE(num_found,
          " planted bugs found, ",
          num_skipped,
          " not visible in this build, ",
          bugs.size(),
          " clean kernels silent");
}
