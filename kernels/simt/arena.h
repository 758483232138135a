// Arena: the shared memory of a block, poisoned and fenced.
#pragma once

#include "accrue/kernels/simt/simt.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace accrue::simt {

/// Arrays of one block after another. Between arrays lie red zones that no access may touch: the
/// address sanitizer sees each access, other builds see writes when the block ends.
class Arena {
 public:
  static constexpr std::size_t kMaxStatic = 48 * 1024, kMaxTotal = kMaxShared;

  struct Array {
    const void* key;
    const char* name;
    std::size_t offset, bytes;
  };

  Arena();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Forgets the arrays of the block before.
  void start_block();
  /// The array of `key`, new or old; all bits of a new one are set. Null if `key` exceeds a limit.
  void* find_or_add(const void* key, const char* name, std::size_t bytes, bool is_static);
  /// The first array whose red zone was written, or null.
  const Array* find_overrun() const;

 private:
  std::byte* memory() const { return memory_.get(); }

  std::unique_ptr<std::byte[]> memory_;
  std::vector<Array> arrays_;
  std::size_t end_ = 0, num_static_ = 0, num_bytes_ = 0;
};

}  // namespace accrue::simt
