// What /proc says of processes: parents, environments, listening sockets.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <system_error>

namespace accrue::test {

inline std::string contents_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Processes whose environment holds `variable`, which is NAME=VALUE.
inline int count_processes_with(const std::string& variable) {
  int count = 0;
  std::error_code error;  // processes come and go meanwhile
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end;
       at.increment(error)) {
    count += contents_of(at->path() / "environ").find(variable + '\0') != std::string::npos;
  }
  return count;
}

inline int parent_of(int process) {
  const std::string status = contents_of("/proc/" + std::to_string(process) + "/status");
  const std::size_t at = status.find("\nPPid:");
  return at == std::string::npos ? 0 : std::stoi(status.substr(at + 6));
}

/// The name of the program that a process runs.
inline std::string name_of(int process) {
  const std::string name = contents_of("/proc/" + std::to_string(process) + "/comm");
  return name.substr(0, name.find('\n'));
}

/// The sockets of this network at which anybody listens, as /proc/<pid>/fd names them.
inline std::set<std::string> listening_sockets() {
  std::set<std::string> sockets;
  for (const char* const table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::istringstream lines(contents_of(table));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string word[10];  // slot, local, remote, state, ..., inode
      for (std::string& next : word) words >> next;
      if (word[3] == "0A") sockets.insert("socket:[" + word[9] + "]");
    }
  }
  return sockets;
}

/// At how many TCP sockets a process listens.
inline int count_listeners(int process) {
  const std::set<std::string> sockets = listening_sockets();
  int count = 0;
  std::error_code error;
  const std::filesystem::path files = "/proc/" + std::to_string(process) + "/fd";
  for (std::filesystem::directory_iterator at(files, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;
    count += sockets.contains(std::filesystem::read_symlink(at->path(), gone).string());
  }
  return count;
}

}  // namespace accrue::test
