#include "accrue/tools/children.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace accrue::tools {
namespace {

namespace fs = std::filesystem;

pid_t parent_of(const fs::path& process) {
  std::ifstream file(process / "stat");
  std::string line;
  std::getline(file, line);
  const std::size_t end_of_name = line.rfind(')');  // the name may hold anything
  if (end_of_name == std::string::npos || end_of_name + 4 > line.size()) return -1;
  return std::atoi(line.c_str() + end_of_name + 4);
}

}  // namespace

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  std::error_code error;  // processes come and go meanwhile
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const pid_t process = std::atoi(at->path().filename().c_str());
    if (process > 0 && parent_of(at->path()) == parent) children.push_back(process);
  }
  return children;
}

void adopt_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

void kill_children() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  while (std::chrono::steady_clock::now() < deadline) {
    pid_t ended = 0;
    while ((ended = waitpid(-1, nullptr, WNOHANG)) > 0) continue;
    if (ended == -1 && errno == ECHILD) return;
    for (const pid_t child : children_of(getpid())) kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace accrue::tools
