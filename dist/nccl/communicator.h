// Communicator: one rank's NCCL communicator, which is watched and aborted, never waited for.
#pragma once

#include "accrue/core/error.h"
#include "accrue/dist/process_group.h"

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

namespace accrue::dist::nccl {

/// Throws unless a call of NCCL succeeded or goes on by itself.
///
/// Errors:  DeviceError with NCCL's words; DistributedError for a rank that is gone.
void check(ncclResult_t result, const char* call, ncclComm_t comm = nullptr);

/// Where the work that was issued has come to.
class Progress {
 public:
  /// Notes the end of what this thread has issued so far.
  virtual void note_issued() = 0;
  /// Whether all of it is done.
  virtual bool is_done() noexcept = 0;
  /// It ends undone now.
  virtual void note_lost(const std::exception_ptr& reason) noexcept = 0;

 protected:
  ~Progress() = default;
};

/// A non-blocking communicator. While work is under way a thread looks at it, and aborts it when
/// NCCL reports an error or a deadline passes: kernels that spin for an absent rank then end.
///
/// Threads: one at a time, but abort() and set_timeout() any.
class Communicator {
 public:
  /// Collective; on the device that is current. Errors: DeviceError, DistributedError with what
  /// NCCL said; TimeoutError; DistributedError when this rank leaves the group meanwhile.
  Communicator(const ncclUniqueId& id, const ProcessGroup& group, Progress& progress);
  /// Aborts what is not done after a second.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Issues calls(comm) as one group, which errors call `name`. Errors: what broke the
  /// communicator.
  template <class Calls>
  void issue(const char* name, const Calls& calls) {
    const ncclComm_t comm = begin(name);
    ncclResult_t result = ncclGroupStart();
    if (result == ncclSuccess) {
      calls(comm);  // what it refuses, the end of the group reports
      result = ncclGroupEnd();
    }
    end(result);
  }
  void check_intact();
  void set_timeout(double seconds) { timeout_ = seconds; }
  /// Lets work end that all ranks have issued, then ends the rest.
  void abort(const std::string& reason) noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  ncclComm_t begin(const char* name);
  void end(ncclResult_t result);
  ncclResult_t await(const ProcessGroup* group = nullptr);
  void check_start(ncclResult_t result, ncclComm_t comm, bool has_left) const;
  void watch();
  std::exception_ptr find_fault(Clock::time_point now) const;
  std::exception_ptr error_of(ncclResult_t state) const;
  std::exception_ptr late() const;
  void break_off(std::exception_ptr error, bool flushes) noexcept;

  ncclComm_t comm_ = nullptr;  ///< null when it was aborted
  std::atomic<double> timeout_;
  Progress& progress_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopping_ = false, is_active_ = false;
  std::atomic<bool> is_issuing_ = false;
  const char* name_ = "";     ///< the group that is under way
  Clock::time_point began_;   ///< it
  std::exception_ptr error_;  ///< why it is broken
  std::thread watcher_;
};

}  // namespace accrue::dist::nccl
