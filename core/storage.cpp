#include "accrue/core/storage.h"

#include "accrue/core/allocator.h"
#include "accrue/core/error.h"

#include <new>

namespace accrue {

Ref<Storage> Storage::allocate(std::int64_t bytes, Device device) {
  static_assert(sizeof(Storage) <= kHeaderBytes);
  ACCRUE_CHECK(device.is_cpu(),
               DeviceError,
               "allocate",
               "device must be cpu in this build, got ",
               device.str(),
               "; configure a build with CUDA");
  ACCRUE_CHECK(bytes >= 0 && bytes <= INT64_MAX - kHeaderBytes,
               ValueError,
               "allocate",
               "bytes must lie in [0, 2^63 - 65], got ",
               bytes);
  void* const block = cpu_allocate(bytes + kHeaderBytes);
  std::byte* const data = static_cast<std::byte*>(block) + kHeaderBytes;
  return Ref<Storage>(new (block) Storage(data, bytes, device));
}

Ref<Storage> Storage::adopt(
    std::byte* data, std::int64_t bytes, Device device, Release release, void* owner) {
  ACCRUE_CHECK(bytes >= 0, ValueError, "adopt", "bytes must be >= 0, got ", bytes);
  Ref<Storage> storage(new (cpu_allocate(kHeaderBytes)) Storage(data, bytes, device));
  storage->is_adopted_ = true;
  storage->release_ = release;
  storage->owner_ = owner;
  return storage;
}

void Storage::destroy(Storage* storage) noexcept {
  std::int64_t bytes = kHeaderBytes;
  if (!storage->is_adopted_) bytes += storage->bytes_;
  if (storage->release_) storage->release_(storage->owner_, storage->data_, storage->bytes_);
  storage->~Storage();
  cpu_free(storage, bytes);
}

}  // namespace accrue
