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
  enum Kind { send, receive, all_reduce };

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

/// The operations of a group, which move as a kernel of NCCL does: until all is done, or abort.
class Group {
 public:
  Group(ncclComm& comm, std::vector<Operation> operations);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// Moves what can be moved; whether that was the last.
  bool advance();
  /// A rank that has not come to any group yet, or -1.
  int find_absent() const;

 private:
  void start();
  void gather(const Operation& operation, std::byte* to);
  void finish();

  ncclComm& comm_;
  std::vector<Operation> operations_;
  Transfers transfers_;
  std::vector<std::vector<std::byte>> gathered_;  ///< all ranks' parts of each sum
  bool has_started_ = false, is_done_ = false;
};

}  // namespace accrue::simt::nccl

struct ncclComm {
 public:
  ncclComm();
  ~ncclComm();
  /// Communicators of this process.
  static int num_alive();
  ncclResult_t start(int num_ranks, const ncclUniqueId& id, int rank, bool blocks);
  /// What ncclCommGetAsyncError() tells.
  ncclResult_t poll();
  /// Whether a call is allowed now.
  ncclResult_t check_ready();
  /// Queues a group; on the default stream it is done when this returns.
  ncclResult_t run(std::vector<accrue::simt::nccl::Operation> operations, cudaStream_t stream);
  void abort();
  void leave();
  /// The thread that has a group open, to which calls belong.
  void set_issuer(std::thread::id issuer);
  std::string last_error();

 private:
  friend class accrue::simt::nccl::Group;
  void initialise(ncclUniqueId id, int num_ranks, int rank, int device);
  void connect(const accrue::simt::nccl::Group& group);
  void set_gone(int rank);
  ncclResult_t state();
  void set(ncclResult_t state, const std::string& error = "");

  std::mutex mutex_;
  ncclResult_t state_ = ncclInProgress;
  std::string error_;
  bool is_polled_ = true;  ///< since a call returned ncclInProgress
  bool blocks_ = false;
  std::thread::id issuer_;
  std::atomic<bool> is_aborted_ = false;
  std::atomic<int> num_groups_ = 0;  ///< that are not done
  std::unique_ptr<accrue::simt::nccl::Meeting> meeting_;
  std::thread starter_;
};
