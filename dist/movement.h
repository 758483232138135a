// Movement: the bytes that one step of a collective moves.
#pragma once

#include <cstddef>
#include <span>

namespace accrue::dist {

/// Bytes that one step of a collective moves. What rank r sends to rank d has the size of what rank
/// d expects from rank r; nothing overlaps.
struct Movement {
  /// One per rank, or a single one that goes to all.
  std::span<const std::span<const std::byte>> outgoing;
  /// One per rank.
  std::span<const std::span<std::byte>> incoming;
};

}  // namespace accrue::dist
