// The caching allocator of device memory: blocks serve again in the order of streams.
#pragma once

#include "accrue/core/allocator.h"
#include "accrue/kernels/cuda/stream.h"

#include <cstddef>

namespace accrue::kernels::cuda {

/// Memory of a device for work on `stream`, which is one of the device's. What the bytes hold is
/// not said. Neither the host nor the device waits.
///
/// Errors:  OutOfMemoryError, after the cached blocks of the device were given back in vain.
void* allocate(std::size_t bytes, int device, Stream stream);

/// Gives memory back. Work that was queued before, on the stream it was made for or on `stream`,
/// may still use it: it serves again when `stream` is done with it, or sooner where the device is
/// full, to an owner that waits.
void free(void* data, Stream stream) noexcept;

/// The device of memory that allocate() gave and nobody freed.
int device_of(const void* data);

/// Bytes of one device in use, their peak, and bytes that are kept for reuse.
MemoryStats memory_stats(int device);
void reset_peak_memory(int device);
/// Returns the cached blocks of a device. Waits for its streams.
void empty_cache(int device);

}  // namespace accrue::kernels::cuda
