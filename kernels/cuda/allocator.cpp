#include "accrue/kernels/cuda/allocator.h"

#include "accrue/core/error.h"
#include "accrue/kernels/cuda/runtime.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace accrue::kernels::cuda {
namespace {

struct Block {
  std::size_t bytes = 0;  ///< asked for
  std::size_t size = 0;   ///< of the block
  int device = 0;
  Stream stream;
};

/// What another stream freed, and may use until `used`.
struct LentBlock {
  void* data = nullptr;
  Event used;
};

/// What is free: per stream and size, since a stream's own order makes reuse safe.
struct Pool {
  using Key = std::pair<void*, std::size_t>;
  std::map<Key, std::vector<void*>> free;
  std::map<Key, std::deque<LentBlock>> lent;
  MemoryStats stats{};
};

/// Nobody holds the mutex while it waits for a device: what that works on may wait for a peer whose
/// thread allocates here.
class Allocator {
 public:
  void* allocate(std::size_t bytes, int device, Stream stream) {
    const std::size_t size = block_size(bytes);
    void* data = cached(size, device, stream);
    if (data == nullptr) data = fresh(size, device, stream);
    const std::scoped_lock lock(mutex_);
    Pool& pool = pools_[device];
    live_[data] = {bytes, size, device, stream};
    pool.stats.allocated_bytes += static_cast<std::int64_t>(bytes);
    pool.stats.peak_bytes = std::max(pool.stats.peak_bytes, pool.stats.allocated_bytes);
    return data;
  }

  void free(void* data, Stream stream) {
    const std::scoped_lock lock(mutex_);
    const auto found = live_.find(data);
    if (found == live_.end()) return;
    const Block block = found->second;
    live_.erase(found);
    const DeviceScope scope(block.device);
    Pool& pool = pools_[block.device];
    const Pool::Key key{block.stream.handle, block.size};
    if (stream == block.stream) {
      scribble(data, block.size, stream);
      pool.free[key].push_back(data);
    } else {
      const Event used = make_event();
      record(used, stream);
      pool.lent[key].push_back({data, used});
    }
    pool.stats.allocated_bytes -= static_cast<std::int64_t>(block.bytes);
    pool.stats.cached_bytes += static_cast<std::int64_t>(block.size);
  }

  int device_of(const void* data) {
    const std::scoped_lock lock(mutex_);
    const auto found = live_.find(const_cast<void*>(data));
    return found == live_.end() ? 0 : found->second.device;
  }

  MemoryStats stats(int device) {
    const std::scoped_lock lock(mutex_);
    return pools_[device].stats;
  }
  void reset_peak(int device) {
    const std::scoped_lock lock(mutex_);
    pools_[device].stats.peak_bytes = pools_[device].stats.allocated_bytes;
  }

  void empty(int device) {
    decltype(Pool::free) unused;
    decltype(Pool::lent) lent;
    {
      const std::scoped_lock lock(mutex_);
      Pool& pool = pools_[device];
      unused.swap(pool.free);
      lent.swap(pool.lent);
      pool.stats.cached_bytes = 0;
    }
    const DeviceScope scope(device);
    for (const auto& [key, blocks] : lent) {
      for (const LentBlock& block : blocks) {
        synchronize(block.used);
        destroy(block.used);
        unused[key].push_back(block.data);
      }
    }
    for (const auto& [key, blocks] : unused) {
      if (!blocks.empty()) synchronize(Stream{key.first});
      for (void* const data : blocks) free_memory(data);
    }
  }

 private:
  /// A free block, or null. Of those that another stream may use, one that it no longer does, or
  /// the first, for which `stream` then waits.
  void* cached(std::size_t size, int device, Stream stream, bool waits = false) {
    const std::scoped_lock lock(mutex_);
    Pool& pool = pools_[device];
    void* data = nullptr;
    if (auto& blocks = pool.free[{stream.handle, size}]; !blocks.empty()) {
      data = blocks.back();
      blocks.pop_back();
    } else if (auto& lent = pool.lent[{stream.handle, size}]; !lent.empty()) {
      const DeviceScope scope(device);
      const LentBlock first = lent.front();
      if (!waits && !is_done(first.used)) return nullptr;
      wait(stream, first.used);
      destroy(first.used);
      lent.pop_front();
      data = first.data;
      scribble(data, size, stream);
    } else {
      return nullptr;
    }
    pool.stats.cached_bytes -= static_cast<std::int64_t>(size);
    return data;
  }

  /// Rather new memory than a wait, which would undo what a second stream is for.
  void* fresh(std::size_t size, int device, Stream stream) {
    const DeviceScope scope(device);
    try {
      return allocate_memory(size);
    } catch (const OutOfMemoryError&) {
      if (void* const data = cached(size, device, stream, true)) return data;
      empty(device);
    }
    try {
      return allocate_memory(size);
    } catch (const OutOfMemoryError&) {
      fail<OutOfMemoryError>("[allocate] cuda:",
                             device,
                             " must have ",
                             size,
                             " bytes left, got fewer beside ",
                             stats(device).allocated_bytes,
                             " in use; use smaller tensors or a smaller micro-batch");
    }
  }

  std::mutex mutex_;
  std::map<int, Pool> pools_;
  std::unordered_map<void*, Block> live_;
};

/// Never destroyed: tensors in static objects may be freed after any other static.
Allocator& allocator() {
  static Allocator* const instance = new Allocator;
  return *instance;
}

}  // namespace

void* allocate(std::size_t bytes, int device, Stream stream) {
  return allocator().allocate(bytes, device, stream);
}

void free(void* data, Stream stream) noexcept {
  try {
    allocator().free(data, stream);
  } catch (...) {  // the device is lost, and the memory with it
  }
}

int device_of(const void* data) { return allocator().device_of(data); }
MemoryStats memory_stats(int device) { return allocator().stats(device); }
void reset_peak_memory(int device) { allocator().reset_peak(device); }
void empty_cache(int device) { allocator().empty(device); }

}  // namespace accrue::kernels::cuda
