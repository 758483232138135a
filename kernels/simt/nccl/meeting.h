// Meeting: the memory in which the ranks of a simulated communicator meet.
#pragma once

#include "accrue/kernels/simt/nccl/nccl.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace accrue::simt::nccl {

/// What one rank sends to another: a queue of two chunks.
struct Mailbox {
  static constexpr std::size_t kChunkBytes = 64 * 1024;
  struct Chunk {
    std::uint64_t message_bytes = 0, bytes = 0;
    std::byte data[kChunkBytes];
  };

  alignas(64) std::atomic<std::uint64_t> num_put;
  alignas(64) std::atomic<std::uint64_t> num_taken;
  Chunk chunks[2];
};

/// A rank's place. All zero is a place that nobody took.
struct Seat {
  enum State : int { free, taken, seated, left };

  std::atomic<int> state;
  int process = 0, device = 0;
  std::atomic<bool> has_issued;  ///< a group
};

/// Anonymous shared memory that the process of ncclGetUniqueId() made: it is gone when the last
/// rank is.
class Meeting {
 public:
  static constexpr int kMaxRanks = 64;

  /// Makes the memory and returns how others find it.
  static ncclResult_t found(ncclUniqueId& id);
  /// Takes a seat. `error` says what went wrong.
  static ncclResult_t join(const ncclUniqueId& id,
                           int num_ranks,
                           int rank,
                           int device,
                           std::unique_ptr<Meeting>& meeting,
                           std::string& error);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  bool is_complete() const;
  /// Two ranks with one device, or "". The meeting is complete.
  std::string duplicate_device() const;
  /// Whether another rank left or its process died.
  bool is_gone(int rank) const;
  void leave();
  void note_issued();
  bool has_issued(int rank) const;
  Mailbox& mailbox(int from, int to) const { return mailboxes_[from * num_ranks_ + to]; }
  int rank() const { return rank_; }
  int num_ranks() const { return num_ranks_; }

 private:
  struct Head;
  Meeting(int num_ranks, int rank) : num_ranks_(num_ranks), rank_(rank) {}
  static std::size_t bytes_for(int num_ranks);

  Head* head_ = nullptr;
  Mailbox* mailboxes_ = nullptr;
  int num_ranks_, rank_, file_ = -1;
};

}  // namespace accrue::simt::nccl
