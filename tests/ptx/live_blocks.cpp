#include "accrue/tests/ptx/live_blocks.h"

#include "accrue/kernels/simt/memory.h"

#include <sys/mman.h>

#include <map>
#include <mutex>
#include <new>

namespace accrue::ptx {
namespace {

struct Blocks {
  std::mutex mutex;
  std::map<const std::byte*, std::size_t, std::less<>> sizes;
};

/// Never destroyed, as what frees device memory last.
Blocks& blocks() {
  static Blocks* const the_blocks = new Blocks;
  return *the_blocks;
}

}  // namespace

LiveBlock block_before(const std::byte* at) {
  const std::scoped_lock lock(blocks().mutex);
  const auto behind = blocks().sizes.upper_bound(at);
  if (behind == blocks().sizes.begin()) return {};
  const auto& [begin, bytes] = *std::prev(behind);
  return {begin, bytes};
}

}  // namespace accrue::ptx

namespace accrue::simt {

// As in the simulator; an access to a fence is found when it is looked up.

GuardedMemory::GuardedMemory(std::size_t bytes, std::size_t misalignment, std::size_t fence)
    : size_(bytes), region_size_(fence + misalignment + bytes + fence) {
  void* const region = mmap(nullptr,
                            region_size_,
                            PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                            -1,
                            0);
  if (region == MAP_FAILED) throw std::bad_alloc();
  region_ = static_cast<std::byte*>(region);
  data_ = region_ + fence + misalignment;
  const std::scoped_lock lock(ptx::blocks().mutex);
  ptx::blocks().sizes[data_] = bytes;
}

GuardedMemory::~GuardedMemory() {
  const std::scoped_lock lock(ptx::blocks().mutex);
  ptx::blocks().sizes.erase(data_);
  munmap(region_, region_size_);
}

bool GuardedMemory::is_intact() const { return true; }

}  // namespace accrue::simt
