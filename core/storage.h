// Storage: the bytes that tensors share, with a version that counts writes.
#pragma once

#include "accrue/core/device.h"
#include "accrue/core/ref_counted.h"

#include <cstdint>

namespace accrue {

/// A block of bytes on one device. Views of a tensor hold a share of one Storage. On the CPU the
/// header and the bytes are one allocation. Concurrent reads are fine; a write needs exclusive use.
class Storage final : public RefCounted {
 public:
  /// Gives adopted bytes back: called once, when the last share goes, with the `owner` of adopt().
  using Release = void (*)(void* owner, std::byte* data, std::int64_t bytes) noexcept;

  /// Errors: OutOfMemoryError; DeviceError for a device this build does not have.
  static Ref<Storage> allocate(std::int64_t bytes, Device device);
  /// Bytes that lie elsewhere and, unless release is null, go back with the last share.
  /// Errors: OutOfMemoryError, ValueError; then the bytes stay the caller's.
  static Ref<Storage> adopt(std::byte* data,
                            std::int64_t bytes,
                            Device device,
                            Release release = nullptr,
                            void* owner = nullptr);
  static void destroy(Storage* storage) noexcept;

  /// Moves the bytes to another device, for all who share them. The address changes; it
  /// counts as a write, so that graphs which saved them refuse to go backward.
  /// Errors: OutOfMemoryError, DeviceError; then nothing has moved.
  void move_to(Device device);

  /// An address on device(): the host may read it only on the CPU.
  std::byte* data() noexcept { return data_; }
  std::int64_t bytes() const noexcept { return bytes_; }
  Device device() const noexcept { return device_; }

  /// Number of writes so far; autograd compares it to find saved tensors that changed.
  std::uint64_t version() const noexcept { return version_; }
  void bump_version() noexcept { ++version_; }

  /// Whether a copy brought in what was made of mixed samples (SampleAxis), for all who share it.
  bool is_mixed() const noexcept { return is_mixed_; }
  void set_mixed(bool is_mixed) noexcept { is_mixed_ = is_mixed; }

 private:
  static constexpr std::int64_t kHeaderBytes = 64;

  static Ref<Storage> allocate_on(Device device, std::int64_t bytes);
  void give_back() noexcept;

  Storage(std::byte* data, std::int64_t bytes, Device device)
      : data_(data), bytes_(bytes), device_(device) {}

  std::byte* data_;
  std::int64_t bytes_;
  std::uint64_t version_ = 0;
  Device device_;
  bool is_adopted_ = false;  ///< no bytes of its own follow the header
  bool is_mixed_ = false;
  Release release_ = nullptr;
  void* owner_ = nullptr;
};

}  // namespace accrue
