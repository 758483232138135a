// run_job(): a command and all that it starts, from the first process to the last.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace accrue::tools {

/// Runs mpirun, hands SIGINT and SIGTERM on to the ranks of this machine, and returns the job's
/// exit code: of the rank that failed first, kRankLost where that was killed. Signals that follow
/// one second later kill the job.
///
/// No process of the job on this machine is alive when this returns, whatever process group or
/// session it went to. Errors: ProgramEnd when nothing can be started; kInputOutput when stdout did
/// not take what the job printed, unless a rank failed by itself.
int run_job(const std::vector<std::string>& command);

/// Tells run_job() in `process` that this rank is about to end with `code`. mpirun would tell it
/// too, but hangs now and then while it ends a job.
void report_failure(pid_t process, int code);

}  // namespace accrue::tools
