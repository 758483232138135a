// SharedRegion: the memory through which the ranks of one host meet.
#pragma once

#include "accrue/dist/call.h"
#include "accrue/dist/waiting.h"

#include <atomic>
#include <cstddef>
#include <memory>

namespace accrue::dist {

/// Why a group is broken; written once, by the first rank that finds out.
struct Breakage {
  enum State : int { intact, being_written, written };
  enum Kind : int { lost, timeout, mismatch };

  std::atomic<int> state{intact};
  Kind kind = lost;
  char message[4096] = {};
};

/// What one rank shows to the others. Calls and counts are double-buffered: step s uses s % 2.
struct alignas(64) RankSlot {
  std::atomic<std::uint64_t> steps{0};  ///< steps this rank has come to
  std::atomic<bool> has_left{false};
  char reason[512] = {};  ///< why it left; written before has_left
  Call call[2] = {};
  std::uint64_t rounds[2] = {};
};

/// W slots and, per rank, two boxes of kBoxBytes for bytes under way. The memory may be shared by
/// threads or by processes.
class SharedRegion {
 public:
  static constexpr std::size_t kBoxBytes = 1 << 18;

  static std::size_t bytes_for(int size);
  /// Memory of this process, ready for use.
  static SharedRegion on_heap(int size);
  /// `memory` holds bytes_for(size); one rank calls construct() before any uses it.
  SharedRegion(std::shared_ptr<void> memory, int size);
  void construct();

  Breakage& breakage() const { return head_->breakage; }
  SharedCount& arrivals() const { return head_->arrivals; }
  RankSlot& slot(int rank) const { return slots_[rank]; }
  std::byte* box(int rank, std::uint64_t step) const {
    return boxes_ + (2 * static_cast<std::size_t>(rank) + step % 2) * kBoxBytes;
  }

 private:
  /// What all ranks share.
  struct Head {
    Breakage breakage;
    alignas(64) SharedCount arrivals;  ///< of ranks at steps
  };

  std::shared_ptr<void> memory_;
  Head* head_;
  RankSlot* slots_;
  std::byte* boxes_;
  int size_;
};

}  // namespace accrue::dist
