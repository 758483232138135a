#include "accrue/tests/ptx/live_blocks.h"

#include "accrue/kernels/simt/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

namespace accrue::ptx {
namespace {

/// operator new needs the list, so the list takes its memory elsewhere.
template <class T>
struct Malloc {
  using value_type = T;

  Malloc() = default;
  template <class U>
  explicit Malloc(const Malloc<U>&) {}
  T* allocate(std::size_t count) {
    void* const data = std::malloc(count * sizeof(T));
    if (data == nullptr) throw std::bad_alloc();
    return static_cast<T*>(data);
  }
  void deallocate(T* data, std::size_t) { std::free(data); }
  bool operator==(const Malloc&) const { return true; }
};

class Blocks {
 public:
  void add(const void* data, std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    sizes_[static_cast<const std::byte*>(data)] = bytes;
  }
  void remove(const void* data) {
    const std::scoped_lock lock(mutex_);
    sizes_.erase(static_cast<const std::byte*>(data));
  }
  LiveBlock before(const std::byte* at) {
    const std::scoped_lock lock(mutex_);
    const auto behind = sizes_.upper_bound(at);
    if (behind == sizes_.begin()) return {};
    const auto& [begin, bytes] = *std::prev(behind);
    return {begin, bytes};
  }

 private:
  using Entry = std::pair<const std::byte* const, std::size_t>;

  std::mutex mutex_;
  std::map<const std::byte*, std::size_t, std::less<>, Malloc<Entry>> sizes_;
};

/// Never destroyed: the last delete comes after everything.
Blocks& blocks() {
  alignas(Blocks) static std::byte place[sizeof(Blocks)];
  static Blocks* const the_blocks = new (place) Blocks;
  return *the_blocks;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  const std::size_t size = std::max(alignment, (bytes + alignment - 1) / alignment * alignment);
  void* const data = std::aligned_alloc(alignment, size);
  if (data == nullptr) throw std::bad_alloc();
  blocks().add(data, bytes);
  return data;
}

void release(void* data) {
  if (data != nullptr) blocks().remove(data);
  std::free(data);
}

}  // namespace

LiveBlock block_before(const std::byte* at) { return blocks().before(at); }

}  // namespace accrue::ptx

void* operator new(std::size_t bytes) { return accrue::ptx::allocate(bytes, 16); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return accrue::ptx::allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* data) noexcept { accrue::ptx::release(data); }
void operator delete(void* data, std::size_t) noexcept { accrue::ptx::release(data); }
void operator delete(void* data, std::align_val_t) noexcept { accrue::ptx::release(data); }
void operator delete(void* data, std::size_t, std::align_val_t) noexcept {
  accrue::ptx::release(data);
}

namespace accrue::simt {

// The same arrays as in the simulator, without fences: an access is looked up, and passes where it
// falls into another block.

GuardedMemory::GuardedMemory(std::size_t bytes, std::size_t misalignment, std::size_t)
    : size_(bytes), region_size_(bytes + misalignment + 1) {
  void* const region = mmap(nullptr,
                            region_size_,
                            PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                            -1,
                            0);
  if (region == MAP_FAILED) throw std::bad_alloc();
  region_ = static_cast<std::byte*>(region);
  data_ = region_ + misalignment;
  ptx::blocks().add(data_, bytes);
}

GuardedMemory::~GuardedMemory() {
  ptx::blocks().remove(data_);
  munmap(region_, region_size_);
}

bool GuardedMemory::is_intact() const { return true; }

}  // namespace accrue::simt
