#include "accrue/dist/shared_region.h"

#include <new>

namespace accrue::dist {
namespace {

std::size_t slots_bytes(int size) { return static_cast<std::size_t>(size) * sizeof(RankSlot); }

}  // namespace

std::size_t SharedRegion::bytes_for(int size) {
  return sizeof(Head) + slots_bytes(size) + 2 * static_cast<std::size_t>(size) * kBoxBytes;
}

SharedRegion::SharedRegion(std::shared_ptr<void> memory, int size)
    : memory_(std::move(memory)),
      head_(static_cast<Head*>(memory_.get())),
      slots_(reinterpret_cast<RankSlot*>(head_ + 1)),
      boxes_(reinterpret_cast<std::byte*>(slots_) + slots_bytes(size)),
      size_(size) {}

void SharedRegion::construct() {
  new (head_) Head;
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
