// The caching CPU allocator: every tensor's bytes come from here, and it counts them.
#pragma once

#include <cstdint>

namespace accrue {

/// Bytes in use by tensors of this process (each with a header of 64), the peak of that number
/// since the last reset, and bytes that are free but kept for reuse.
struct MemoryStats {
  std::int64_t allocated_bytes;
  std::int64_t peak_bytes;
  std::int64_t cached_bytes;
};

/// Returns `bytes` (> 0) of uninitialised memory, aligned to 64. Thread-safe.
/// Errors: OutOfMemoryError naming the number of bytes; no block in use changes, the cache may be
/// emptied.
void* cpu_allocate(std::int64_t bytes);

/// Gives memory back; `bytes` as given to cpu_allocate. Freed blocks are kept for reuse.
void cpu_free(void* pointer, std::int64_t bytes) noexcept;

MemoryStats cpu_memory_stats();
void reset_peak_cpu_memory();

/// Returns the cached blocks to the system.
void empty_cpu_cache() noexcept;

}  // namespace accrue
