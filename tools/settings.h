// Settings: how a job is started, from the command line.
#pragma once

#include "accrue/bench/support/options.h"

#include <cstdint>
#include <string>

namespace accrue::tools {

/// Accelerate's names. Negative or empty where neither the command line nor a file says it.
struct Settings {
  std::int64_t num_processes = -1;  ///< of all machines together
  std::int64_t num_machines = -1;
  std::int64_t machine_rank = -1;
  std::string main_process_ip;
  std::int64_t main_process_port = -1;
  std::string hostfile;
  std::string mixed_precision;
  bool use_cpu = false;
};

/// Declares an option for each setting.
void add_options(bench::Options& options, Settings& settings);

}  // namespace accrue::tools
