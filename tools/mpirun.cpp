#include "accrue/tools/mpirun.h"

#include "accrue/bench/support/program.h"
#include "accrue/core/error.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <thread>

namespace accrue::tools {
namespace {

namespace fs = std::filesystem;
using bench::ProgramEnd;

bool is_executable(const fs::path& path) {
  return fs::is_regular_file(path) && access(path.c_str(), X_OK) == 0;
}

/// The file that a shell would start for `name`; empty if there is none.
fs::path find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return is_executable(name) ? fs::absolute(name) : fs::path();
  }
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / name;
    if (is_executable(candidate)) return fs::absolute(candidate);
  }
  return {};
}

/// Says why find_program() found nothing.
std::string describe_missing(const std::string& name) {
  std::error_code error;
  const bool is_path = name.find('/') != std::string::npos;
  if (fs::is_directory(name, error)) return text("'", name, "' is a directory, not a program");
  if (is_path && fs::exists(name, error))
    return text(name, " may not be executed; type chmod +x ", name);
  if (!is_path && !name.empty() && fs::exists(name, error))
    return text("there is no ", name, " in PATH; type ./", name, " for the one in this folder");
  return text("there is no program '", name, "'");
}

std::int64_t machines_in(const std::string& hostfile) {
  std::ifstream file(hostfile);
  if (!file || fs::is_directory(hostfile))
    throw ProgramEnd{bench::kMissingInput, text("cannot read the hostfile ", hostfile)};
  std::int64_t count = 0;
  for (std::string line; std::getline(file, line);) {
    const std::size_t start = line.find_first_not_of(" \t\r");
    count += start != std::string::npos && line[start] != '#';
  }
  if (count == 0) {
    throw ProgramEnd{bench::kConfiguration, text(hostfile, " must name a machine, got none")};
  }
  return count;
}

[[noreturn]] void refuse(const std::string& message) {
  throw ProgramEnd{bench::kConfiguration, message};
}

/// mpirun has pipes and a socket to each process of this machine. Without room for them it hangs.
void make_room(std::int64_t processes) {
  const auto needed = static_cast<rlim_t>(64 + 4 * processes);
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < needed) {
    refuse(text(processes,
                " processes need ",
                needed,
                " open files, got a limit of ",
                limit.rlim_max,
                "; raise it with ulimit -n"));
  }
  limit.rlim_cur = std::max(limit.rlim_cur, needed);
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// Open MPI starts the processes of all machines from one of them, and needs their names for it.
std::int64_t check_machines(const Settings& s) {
  const std::int64_t listed = s.hostfile.empty() ? 1 : machines_in(s.hostfile);
  const std::int64_t machines = s.num_machines < 0 ? listed : s.num_machines;
  if (s.machine_rank > 0) {
    refuse(
        text("the job must be launched on machine 0, which starts all others, got --machine_rank ",
             s.machine_rank));
  }
  if (machines > 1 && s.hostfile.empty()) {
    refuse(text("--num_machines ",
                machines,
                " needs --hostfile FILE with the name of each machine on a line, reached by ssh"));
  }
  if (s.num_machines > listed) {
    refuse(text(s.hostfile, " must name the ", machines, " machines, got ", listed));
  }
  return machines;
}

}  // namespace

std::vector<std::string> mpirun_command(const JobRequest& request) {
  const Settings& s = request.settings;
  const std::int64_t processes = s.num_processes < 0 ? 1 : s.num_processes;
  const std::int64_t machines = check_machines(s);
  const fs::path mpirun = find_program("mpirun");
  if (mpirun.empty())
    refuse("mpirun must be installed, got none in PATH; apt-get install openmpi-bin");
  const fs::path program = find_program(request.program.front());
  if (program.empty()) {
    throw ProgramEnd{bench::kMissingInput, describe_missing(request.program.front())};
  }

  std::vector<std::string> command{mpirun};
  const auto add = [&](std::initializer_list<std::string> words) {
    command.insert(command.end(), words);
  };
  if (geteuid() == 0) add({"--allow-run-as-root"});
  // Ranks of this machine report to launch(), so mpirun need not say it in a box.
  if (s.hostfile.empty()) add({"-q"});
  add({"--oversubscribe", "--bind-to", "none", "-n", std::to_string(processes)});
  add({"--mca",
       "pml",
       "ob1",
       "--mca",
       "btl",
       s.hostfile.empty() ? "self,vader" : "self,vader,tcp"});
  // Containers forbid to read the memory of another process.
  add({"--mca", "btl_vader_single_copy_mechanism", "none"});
  if (!s.hostfile.empty()) add({"--hostfile", s.hostfile});
  if (s.num_machines > 1) add({"--map-by", text("ppr:", processes / machines, ":node")});
  const std::int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::int64_t here = (processes + machines - 1) / machines;
  if (here > cores) add({"--mca", "mpi_yield_when_idle", "1"});
  make_room(here);
  const std::int64_t threads = std::max<std::int64_t>(1, cores / here);
  add({"-x",
       std::getenv("ACCRUE_NUM_THREADS") ? "ACCRUE_NUM_THREADS"
                                         : text("ACCRUE_NUM_THREADS=", threads)});
  // What the programs' Accelerators read.
  const auto pass_on = [&](const char* name, const std::string& value) {
    if (!value.empty()) {
      add({"-x", text(name, "=", value)});
    } else if (std::getenv(name)) {
      add({"-x", name});
    }
  };
  pass_on("ACCELERATE_MIXED_PRECISION", s.mixed_precision);
  pass_on("ACCELERATE_TORCH_DEVICE", request.cpu ? "cpu" : "");
  if (request.label) add({"--tag-output"});
  // The number means nothing on other machines.
  const std::string launcher = std::to_string(s.hostfile.empty() ? getpid() : 0);
  add({fs::read_symlink("/proc/self/exe"), "rank", launcher, program});
  command.insert(command.end(), request.program.begin() + 1, request.program.end());
  return command;
}

}  // namespace accrue::tools
