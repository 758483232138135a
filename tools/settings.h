// Settings: how a job is started, from the command line and from Accelerate's YAML files.
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
  std::string hostfile;  ///< mpirun_config: mpirun_hostfile in a file
  std::string mixed_precision;

  bool operator==(const Settings&) const = default;
};

/// Declares --config_file and an option for each setting.
void add_options(bench::Options& options, Settings& settings, std::string& config_file);

/// Fills in what `settings` leaves open from a file. Keys that mean nothing here are named in a
/// warning on stderr.
///
/// Errors:  ProgramEnd: kMissingInput without the file, kConfiguration for what is no YAML, has
///          wrong values, or contradicts itself.
void read_settings(const std::string& file, Settings& settings);

/// Errors:  ProgramEnd with kConfiguration for settings that do not fit together; ValueError for a
///          mixed_precision that is none.
void check(const Settings& settings);

/// The text of a file that Accelerate reads too.
std::string to_yaml(const Settings& settings);

}  // namespace accrue::tools
