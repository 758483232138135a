// The MPI library of this process: its start, its end, and the lock around each call.
#pragma once

#include "accrue/dist/process_group.h"

#include <mpi.h>

#include <memory>
#include <mutex>
#include <vector>

namespace accrue::dist::mpi {

/// Calls come from several threads, one at a time (MPI_THREAD_SERIALIZED).
std::mutex& lock();

/// Starts MPI unless the program did. What this starts ends with the process.
void start();

/// The group of all processes, which must agree before MPI ends, and its duplicates.
class World {
 public:
  virtual ~World() = default;
  /// Whether all ranks said that they end, within so many seconds.
  virtual bool end(double seconds) noexcept = 0;

 protected:
  std::shared_ptr<ProcessGroup> add_twin(const std::shared_ptr<ProcessGroup>& twin);
  /// Ranks that wait in a duplicate learn that this process ends.
  void leave_twins() noexcept;

 private:
  std::vector<std::weak_ptr<ProcessGroup>> twins_;
};

/// Asks `world` when the process ends. Where a rank is missing the process ends without
/// MPI_Finalize, which would wait for it for ever; the launcher then ends what is left of the job.
/// `seconds` is how long to wait, unless a group is broken: then it is one second.
void end_with(std::shared_ptr<World> world, double seconds);
void note_breakage() noexcept;
/// Whether what MPI owned is gone, or belongs to the process that forked this one.
bool is_over() noexcept;

/// The text of an MPI error code.
std::string message_of(int code);

/// Runs `function`, which returns an MPI error code, under the lock.
///
/// Errors:  DistributedError with MPI's text.
template <class Function>
void call(const char* name, const Function& function) {
  const std::lock_guard guard(lock());
  const int code = function();
  ACCRUE_CHECK(code == MPI_SUCCESS,
               DistributedError,
               name,
               "must succeed, got ",
               message_of(code),
               "; see what MPI reports above");
}

}  // namespace accrue::dist::mpi
