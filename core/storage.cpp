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
  void* block = cpu_allocate(bytes + kHeaderBytes);
  return Ref<Storage>(new (block) Storage(bytes, device));
}

void Storage::destroy(Storage* storage) noexcept {
  const std::int64_t bytes = storage->bytes_ + kHeaderBytes;
  storage->~Storage();
  cpu_free(storage, bytes);
}

}  // namespace accrue
