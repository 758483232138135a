#include "accrue/bench/support/program.h"

#include "accrue/core/error.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

namespace accrue::bench {
namespace {

/// Descriptors 0 to 2 that are closed become readers of /dev/null, so that no file the program
/// opens takes their place. Writing to them still fails.
void occupy_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", O_RDONLY) == -1) return;
  }
}

int report(ExitCode code, std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, message.c_str());
  return code;
}

int run_body(int (*body)(int, char**), int argc, char** argv) {
  try {
    return body(argc, argv);
  } catch (const ProgramEnd& end) {
    if (end.message.empty()) return end.code;
    return report(end.code, end.message);
  } catch (const ValueError& error) {
    return report(kConfiguration, error.what());
  } catch (const MismatchError& error) {
    return report(kRanksDisagree, error.what());
  } catch (const DistributedError& error) {
    return report(kRankLost, error.what());
  } catch (const OutOfMemoryError& error) {
    return report(kOutOfMemory, error.what());
  } catch (const std::bad_alloc&) {
    return report(kOutOfMemory, "out of memory");
  } catch (const std::length_error&) {  // a container of more elements than addresses
    return report(kOutOfMemory, "out of memory");
  } catch (const std::system_error& error) {  // fmt::print when stdout does not take the text
    return report(std::ferror(stdout) ? kInputOutput : kInternal, error.what());
  } catch (const std::exception& error) {
    return report(kInternal, error.what());
  }
}

}  // namespace

int run_program(int (*body)(int argc, char** argv), int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): SIGPIPE can be ignored everywhere
  occupy_standard_descriptors();
  const int code = run_body(body, argc, argv);
  if ((std::fflush(stdout) == 0 && !std::ferror(stdout)) || code != kDone) return code;
  return report(kInputOutput, text("cannot write to stdout: ", std::strerror(errno)));
}

void require_environment(char** argv, const char* name, const char* value) {
  const char* const present = std::getenv(name);
  if (value ? present && std::strcmp(present, value) == 0 : !present) return;
  if (value) {
    setenv(name, value, 1);
  } else {
    unsetenv(name);
  }
  execv("/proc/self/exe", argv);
}

}  // namespace accrue::bench
