// ncclComm: a rank's handle of a simulated communicator, and the operations of a group.
#pragma once

#include "accrue/kernels/simt/nccl/meeting.h"
#include "accrue/kernels/simt/nccl/transfers.h"

#include <mutex>
#include <thread>
#include <vector>

namespace accrue::simt::nccl {

/// A call of ncclSend() and its like.
struct Operation {
  enum Kind { send, receive, broadcast, all_gather, all_reduce };

  Kind kind = send;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
  int peer = 0;  ///< or the root

  std::size_t bytes() const {
    return count * (type == ncclFloat64 ? 8 : type == ncclFloat32 ? 4 : 1);
  }
};

}  // namespace accrue::simt::nccl

struct ncclComm {
 public:
  ~ncclComm();
  ncclResult_t start(int num_ranks, const ncclUniqueId& id, int rank, bool blocks);
  /// What ncclCommGetAsyncError() tells.
  ncclResult_t poll();
  /// Whether a call is allowed now; counts as one of a group if so.
  ncclResult_t check_ready();
  /// Moves the data of a group; returns when it is done or aborted.
  ncclResult_t run(const std::vector<accrue::simt::nccl::Operation>& operations);
  void abort();
  void leave();
  std::string last_error();

 private:
  void initialise(ncclUniqueId id, int num_ranks, int rank, int device);
  void move(const std::vector<accrue::simt::nccl::Operation>& operations);
  void wait_for(accrue::simt::nccl::Transfers& transfers);
  void set_gone(int rank);
  ncclResult_t state();
  void set(ncclResult_t state, const std::string& error = "");

  std::mutex mutex_;
  ncclResult_t state_ = ncclInProgress;
  std::string error_;
  bool is_polled_ = true;  ///< since a call returned ncclInProgress
  bool blocks_ = false;
  std::atomic<bool> is_aborted_ = false;
  std::atomic<int> num_running_ = 0;
  std::unique_ptr<accrue::simt::nccl::Meeting> meeting_;
  std::thread starter_;
};
