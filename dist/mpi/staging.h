// Staging: the memory that MPI reads and writes. It outlives messages that nobody waits for.
#pragma once

#include "accrue/dist/movement.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace accrue::dist::mpi {

/// Copies of what moves: the caller's memory may go while MPI still uses what it was given.
class Staging {
 public:
  /// Copies of what goes out, and room for what comes in, until the next call.
  Movement open(const Movement& movement) {
    std::size_t num_bytes = 0;
    for (const auto piece : movement.outgoing) num_bytes += piece.size();
    for (const auto piece : movement.incoming) num_bytes += piece.size();
    if (size_ < num_bytes) memory_ = std::make_unique_for_overwrite<std::byte[]>(num_bytes);
    size_ = std::max(size_, num_bytes);
    std::byte* free = memory_.get();
    outgoing_.clear();
    for (const auto piece : movement.outgoing) {
      outgoing_.emplace_back(free, piece.size());
      free = std::copy(piece.begin(), piece.end(), free);
    }
    incoming_.clear();
    for (const auto piece : movement.incoming) {
      incoming_.emplace_back(free, piece.size());
      free += piece.size();
    }
    return {outgoing_, incoming_};
  }
  /// Hands on what came in, except from rank `me`.
  void deliver(const Movement& movement, std::size_t me) {
    for (std::size_t r = 0; r < incoming_.size(); ++r)
      if (r != me)
        std::copy(incoming_[r].begin(), incoming_[r].end(), movement.incoming[r].begin());
    if (size_ <= kMostKept) return;
    memory_.reset();
    size_ = 0;
  }
  /// Leaks the memory on purpose: MPI may use it as long as the process lives.
  void abandon() noexcept {
    static_cast<void>(memory_.release());
    size_ = 0;
  }

 private:
  static constexpr std::size_t kMostKept = std::size_t{64} << 20;

  std::unique_ptr<std::byte[]> memory_;
  std::size_t size_ = 0;
  std::vector<std::span<const std::byte>> outgoing_;
  std::vector<std::span<std::byte>> incoming_;
};

}  // namespace accrue::dist::mpi
