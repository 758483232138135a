#include "accrue/dist/shared_region.h"

#include <new>

namespace accrue::dist {
namespace {

constexpr std::size_t kSlotsAt = (sizeof(Breakage) + 63) / 64 * 64;

std::size_t boxes_at(int size) {
  return kSlotsAt + static_cast<std::size_t>(size) * sizeof(RankSlot);
}

}  // namespace

std::size_t SharedRegion::bytes_for(int size) {
  return boxes_at(size) + 2 * static_cast<std::size_t>(size) * kBoxBytes;
}

SharedRegion::SharedRegion(std::shared_ptr<void> memory, int size)
    : memory_(std::move(memory)),
      slots_(reinterpret_cast<RankSlot*>(static_cast<std::byte*>(memory_.get()) + kSlotsAt)),
      boxes_(static_cast<std::byte*>(memory_.get()) + boxes_at(size)),
      size_(size) {}

void SharedRegion::construct() {
  new (memory_.get()) Breakage;
  for (int r = 0; r < size_; ++r) new (slots_ + r) RankSlot;
}

SharedRegion SharedRegion::on_heap(int size) {
  constexpr std::align_val_t kAlignment{64};
  SharedRegion region({::operator new(bytes_for(size), kAlignment),
                       [](void* memory) { ::operator delete(memory, kAlignment); }},
                      size);
  region.construct();
  return region;
}

}  // namespace accrue::dist
