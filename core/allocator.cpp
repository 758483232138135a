#include "accrue/core/allocator.h"

#include "accrue/core/config.h"
#include "accrue/core/error.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

namespace accrue {
namespace {

constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kMaxCachedBytes = std::int64_t{1} << 30;

struct FreeBlock {
  FreeBlock* next;
};

/// Eight size classes per power of two: at most 12.5 % of a block is slack.
struct SizeClass {
  int index;
  std::int64_t bytes;
};

constexpr SizeClass size_class(std::int64_t bytes) {
  const std::int64_t units = (bytes + kAlignment - 1) / kAlignment;
  if (units <= 8) return {static_cast<int>(units), units * kAlignment};
  const int shift = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(units - 1))) - 4;
  const std::int64_t rounded = ((units - 1) >> shift) + 1;  // in (8, 16]
  return {static_cast<int>(rounded) + 8 * shift, (rounded << shift) * kAlignment};
}

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 48;  // no address space holds more
constexpr int kNumClasses = size_class(kMaxBytes).index + 1;

class CachingAllocator {
 public:
  void* allocate(std::int64_t bytes) {
    if (bytes > kMaxBytes) refuse(bytes);
    const SizeClass size = size_class(bytes);
    {
      const std::scoped_lock lock(mutex_);
      if (FreeBlock* block = bins_[bin(size)]) {
        bins_[bin(size)] = block->next;
        cached_ -= size.bytes;
        count(bytes);
        return block;
      }
    }
    void* pointer = std::aligned_alloc(kAlignment, static_cast<std::size_t>(size.bytes));
    if (!pointer) {
      release();
      pointer = std::aligned_alloc(kAlignment, static_cast<std::size_t>(size.bytes));
    }
    if (!pointer) refuse(bytes);
    const std::scoped_lock lock(mutex_);
    count(bytes);
    return pointer;
  }

  void free(void* pointer, std::int64_t bytes) noexcept {
    const SizeClass size = size_class(bytes);
    {
      const std::scoped_lock lock(mutex_);
      allocated_ -= bytes;
      if (!kAddressSanitizer && cached_ + size.bytes <= kMaxCachedBytes) {
        bins_[bin(size)] = new (pointer) FreeBlock{bins_[bin(size)]};
        cached_ += size.bytes;
        return;
      }
    }
    std::free(pointer);
  }

  void release() noexcept {
    const std::scoped_lock lock(mutex_);
    for (FreeBlock*& head : bins_) {
      while (head) std::free(std::exchange(head, head->next));
    }
    cached_ = 0;
  }

  MemoryStats stats() {
    const std::scoped_lock lock(mutex_);
    return {allocated_, peak_, cached_};
  }

  void reset_peak() {
    const std::scoped_lock lock(mutex_);
    peak_ = allocated_;
  }

 private:
  [[noreturn]] static void refuse(std::int64_t bytes) {
    fail<OutOfMemoryError>("[allocate] the system must provide ",
                           bytes,
                           " bytes, got none; use smaller tensors or a smaller micro-batch");
  }

  static std::size_t bin(SizeClass size) { return static_cast<std::size_t>(size.index); }

  void count(std::int64_t bytes) {
    allocated_ += bytes;
    peak_ = std::max(peak_, allocated_);
  }

  std::mutex mutex_;
  std::array<FreeBlock*, kNumClasses> bins_{};
  std::int64_t allocated_ = 0;
  std::int64_t peak_ = 0;
  std::int64_t cached_ = 0;
};

/// Never destroyed: tensors in static objects may be freed after any other static.
CachingAllocator& allocator() {
  static CachingAllocator* const instance = new CachingAllocator;
  return *instance;
}

}  // namespace

void* cpu_allocate(std::int64_t bytes) { return allocator().allocate(bytes); }
void cpu_free(void* pointer, std::int64_t bytes) noexcept { allocator().free(pointer, bytes); }
MemoryStats cpu_memory_stats() { return allocator().stats(); }
void reset_peak_cpu_memory() { allocator().reset_peak(); }
void empty_cpu_cache() noexcept { allocator().release(); }

}  // namespace accrue
