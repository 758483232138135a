// Where the memory lies that kernels may reach: what GuardedMemory holds, which is all device
// memory of tests and of cudaMalloc, and nothing of the host.
#pragma once

#include <cstddef>

namespace accrue::ptx {

struct LiveBlock {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;

  bool holds(const std::byte* at, std::size_t count) const {
    const auto offset = static_cast<std::size_t>(at - begin);
    return offset <= bytes && count <= bytes - offset;
  }
};

/// The last block that begins at or before the address; empty if there is none.
LiveBlock block_before(const std::byte* at);

}  // namespace accrue::ptx
