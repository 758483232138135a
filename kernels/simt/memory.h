// GuardedMemory: simulated device memory that lies between fences.
#pragma once

#include <cstddef>

namespace accrue::simt {

/// Bytes that end at a fence: an access beyond ends the process (the address sanitizer names the
/// line), a write just before or in the padding behind is seen by is_intact().
///
/// Pages are committed when they are first touched, so giant tensors cost only what a kernel uses.
class GuardedMemory {
 public:
  /// Fences as wide as any product of two ints times 4 bytes, for index overflow.
  static constexpr std::size_t kWideFence = std::size_t{1} << 34;

  /// The address is 16-byte aligned plus `misalignment`. Contents are zero.
  ///
  /// Errors:  OutOfMemoryError.
  explicit GuardedMemory(std::size_t bytes,
                         std::size_t misalignment = 0,
                         std::size_t fence = 64 * 1024);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// False if bytes beside the data were written.
  bool is_intact() const;

 private:
  std::byte* padding_begin() const;  ///< what is_intact() looks at in front of the data

  std::byte *region_ = nullptr, *open_begin_ = nullptr, *open_end_ = nullptr, *data_ = nullptr;
  std::size_t size_, region_size_ = 0;
};

}  // namespace accrue::simt
