#include "accrue/kernels/simt/memory.h"

#include "accrue/core/config.h"
#include "accrue/core/error.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>

namespace accrue::simt {
namespace {

constexpr std::byte kFence{0xa5};
constexpr std::size_t kNamedFence = 64 * 1024;  // accesses there are reported with their line

std::byte* map(std::size_t bytes) {
  void* const region =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ACCRUE_CHECK(region != MAP_FAILED,
               OutOfMemoryError,
               "simulator",
               "the system refused to map ",
               bytes,
               " bytes; allow overcommitment of memory");
  return static_cast<std::byte*>(region);
}

}  // namespace

GuardedMemory::GuardedMemory(std::size_t bytes, std::size_t misalignment, std::size_t fence)
    : size_(bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t open = (bytes + misalignment + 16 + page - 1) / page * page;
  region_size_ = open + 2 * fence;
  region_ = map(region_size_);
  open_begin_ = region_ + fence;
  open_end_ = open_begin_ + open;
  mprotect(open_begin_, open, PROT_READ | PROT_WRITE);
  const auto last = std::bit_cast<std::uintptr_t>(open_end_ - bytes - misalignment);
  data_ = open_end_ - bytes - last % 16;
  const auto forbid = [](std::byte* begin, std::byte* end) {
    if (!kAddressSanitizer) std::fill(begin, end, kFence);
    if (kAddressSanitizer)
      __asan_poison_memory_region(begin, static_cast<std::size_t>(end - begin));
  };
  forbid(padding_begin(), data_);
  forbid(data_ + bytes, open_end_);
  if constexpr (kAddressSanitizer) __asan_poison_memory_region(open_end_, kNamedFence);
}

std::byte* GuardedMemory::padding_begin() const {
  constexpr std::ptrdiff_t kChecked = 4096;
  return data_ - std::min(kChecked, data_ - open_begin_);
}

GuardedMemory::~GuardedMemory() {
  const auto allow = [](std::byte* begin, std::byte* end) {  // not all: shadows of a large region
    __asan_unpoison_memory_region(begin, static_cast<std::size_t>(end - begin));  // take memory
  };
  if constexpr (kAddressSanitizer) {
    allow(padding_begin(), data_);
    allow(data_ + size_, open_end_ + kNamedFence);
  }
  munmap(region_, region_size_);
}

bool GuardedMemory::is_intact() const {
  if constexpr (kAddressSanitizer) return true;
  const auto written = [](std::byte value) { return value != kFence; };
  return std::none_of(padding_begin(), data_, written) &&
         std::none_of(data_ + size_, open_end_, written);
}

}  // namespace accrue::simt
