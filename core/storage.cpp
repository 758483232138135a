#include "accrue/core/storage.h"

#include "accrue/core/allocator.h"
#include "accrue/core/device_backend.h"
#include "accrue/core/error.h"

#include <new>
#include <utility>

namespace accrue {

/// Bytes that do not follow the header.
Ref<Storage> Storage::allocate_on(Device device, std::int64_t bytes) {
  if (device.is_cpu()) {
    const Release release = [](void*, std::byte* data, std::int64_t size) noexcept {
      cpu_free(data, size + kHeaderBytes);
    };
    auto* const data = static_cast<std::byte*>(cpu_allocate(bytes + kHeaderBytes));
    return adopt(data, bytes, device, release);
  }
  DeviceBackend& backend = backend_of(device, "allocate");
  const Release release = [](void* owner, std::byte* data, std::int64_t) noexcept {
    static_cast<DeviceBackend*>(owner)->free(data);
  };
  std::byte* const data = backend.allocate(bytes, device);
  try {
    return adopt(data, bytes, device, release, &backend);
  } catch (...) {
    backend.free(data);
    throw;
  }
}

Ref<Storage> Storage::allocate(std::int64_t bytes, Device device) {
  static_assert(sizeof(Storage) <= kHeaderBytes);
  ACCRUE_CHECK(bytes >= 0 && bytes <= INT64_MAX - kHeaderBytes,
               ValueError,
               "allocate",
               "bytes must lie in [0, 2^63 - 65], got ",
               bytes);
  if (!device.is_cpu()) return allocate_on(device, bytes);
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

void Storage::give_back() noexcept {
  if (release_ != nullptr) release_(owner_, data_, bytes_);
  release_ = nullptr;
}

void Storage::move_to(Device device) {
  if (device == device_) return;
  // The bytes of another storage, which has none then.
  const Ref<Storage> other = allocate_on(device, bytes_);
  backend_of(device.is_cpu() ? device_ : device, "to")
      .copy_bytes(other->data_, device, data_, device_, bytes_);
  give_back();
  data_ = other->data_;
  device_ = device;
  release_ = std::exchange(other->release_, nullptr);
  owner_ = other->owner_;
  bump_version();
}

void Storage::destroy(Storage* storage) noexcept {
  const std::int64_t bytes = kHeaderBytes + (storage->is_adopted_ ? 0 : storage->bytes_);
  storage->give_back();
  storage->~Storage();
  cpu_free(storage, bytes);
}

}  // namespace accrue
