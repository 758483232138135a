// The command line of mpirun for a job.
#pragma once

#include "accrue/tools/settings.h"

#include <string>
#include <vector>

namespace accrue::tools {

/// What to start, and how.
struct JobRequest {
  Settings settings;
  bool cpu = false;                  ///< Accelerators that are given no device take the CPU
  bool label = false;                ///< each line of output begins with its rank
  std::vector<std::string> program;  ///< its path and its arguments
};

/// Settles what the request leaves open and returns mpirun's arguments, its path first.
///
/// Errors:  ProgramEnd: kConfiguration when mpirun is missing or the settings do not fit together,
///          kMissingInput for a program or hostfile that does not exist.
std::vector<std::string> mpirun_command(const JobRequest& request);

}  // namespace accrue::tools
