#include "accrue/kernels/simt/arena.h"

#include "accrue/core/config.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace accrue::simt {
namespace {

constexpr std::size_t kAlignment = 16, kRedZone = 128;
constexpr std::size_t kMaxArrays = 64;
constexpr std::size_t kCapacity =
    Arena::kMaxTotal + kMaxArrays * (kRedZone + kAlignment) + kRedZone;
constexpr std::byte kPoison{0xff}, kFence{0xa5};

/// memset, but not for the race detector: the simulator's own writes are no kernel's.
void fill(std::byte* begin, std::size_t count, std::byte value) {
  if constexpr (!kThreadSanitizer) {
    std::memset(begin, static_cast<int>(value), count);
    return;
  }
  volatile std::byte* const out = begin;
  for (std::size_t i = 0; i < count; ++i) out[i] = value;
}

void forbid(std::byte* begin, std::size_t count) {
  if constexpr (kAddressSanitizer) {
    __asan_poison_memory_region(begin, count);
  } else {
    fill(begin, count, kFence);
  }
}

void allow(std::byte* begin, std::size_t count) {
  if constexpr (kAddressSanitizer) __asan_unpoison_memory_region(begin, count);
}

std::size_t rounded(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Arena::Arena() : memory_(std::make_unique<std::byte[]>(kCapacity + kAlignment)) {
  arrays_.reserve(kMaxArrays);
  start_block();
}

Arena::~Arena() { allow(memory(), kCapacity + kAlignment); }

void Arena::start_block() {
  arrays_.clear();
  end_ = num_static_ = num_bytes_ = 0;
  if constexpr (kAddressSanitizer) forbid(memory(), kCapacity + kAlignment);
}

void* Arena::find_or_add(const void* key, const char* name, std::size_t bytes, bool is_static) {
  for (const Array& array : arrays_) {
    if (array.key == key) return memory() + array.offset;
  }
  num_bytes_ += bytes;
  num_static_ += is_static ? bytes : 0;
  if (num_static_ > kMaxStatic || num_bytes_ > kMaxTotal || arrays_.size() == kMaxArrays) {
    return nullptr;
  }
  forbid(memory() + end_, kRedZone);
  const std::size_t offset = end_ + kRedZone;
  arrays_.push_back({key, name, offset, bytes});
  allow(memory() + offset, bytes);
  fill(memory() + offset, bytes, kPoison);
  end_ = offset + rounded(bytes);
  forbid(memory() + offset + bytes, end_ - offset - bytes + kRedZone);
  return memory() + offset;
}

const Arena::Array* Arena::find_overrun() const {
  if constexpr (kAddressSanitizer) return nullptr;
  const auto written = [](std::byte value) { return value != kFence; };
  for (const Array& array : arrays_) {
    const std::byte* const begin = memory() + array.offset;
    const std::byte* const end = begin + array.bytes;
    if (std::any_of(begin - kRedZone, begin, written) ||
        std::any_of(end, end + kRedZone, written)) {
      return &array;
    }
  }
  return nullptr;
}

}  // namespace accrue::simt
