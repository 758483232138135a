// Storage: the bytes that tensors share, with a version that counts writes.
#pragma once

#include "accrue/core/device.h"
#include "accrue/core/ref_counted.h"

#include <cstdint>

namespace accrue {

/// A block of bytes on one device. Views of a tensor hold a share of one Storage. The header and
/// the bytes are one allocation. Concurrent reads are fine; a write needs exclusive use.
class Storage final : public RefCounted {
 public:
  /// Errors: OutOfMemoryError; DeviceError for a device this build does not have.
  static Ref<Storage> allocate(std::int64_t bytes, Device device);
  static void destroy(Storage* storage) noexcept;

  std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this) + kHeaderBytes; }
  std::int64_t bytes() const noexcept { return bytes_; }
  Device device() const noexcept { return device_; }

  /// Number of writes so far; autograd compares it to find saved tensors that changed.
  std::uint64_t version() const noexcept { return version_; }
  void bump_version() noexcept { ++version_; }

 private:
  static constexpr std::int64_t kHeaderBytes = 64;

  Storage(std::int64_t bytes, Device device) : bytes_(bytes), device_(device) {}

  std::int64_t bytes_;
  std::uint64_t version_ = 0;
  Device device_;
};

}  // namespace accrue
