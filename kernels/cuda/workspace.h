// Workspace: device memory that one launch needs for itself.
#pragma once

#include "accrue/kernels/cuda/allocator.h"
#include "accrue/kernels/cuda/runtime.h"

#include <cstddef>

namespace accrue::kernels::cuda {

/// Memory of the current device; freed when the work before on the stream is done.
class Workspace {
 public:
  /// Errors:  OutOfMemoryError.
  Workspace(std::size_t bytes, Stream stream)
      : stream_(stream),
        memory_(bytes == 0 ? nullptr : allocate(bytes, current_device(), stream)) {}
  ~Workspace() {
    if (memory_ != nullptr) free(memory_, stream_);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// Copies `bytes` from the host; the source may change afterwards.
  void upload(const void* source, std::size_t bytes) {
    if (bytes > 0) copy(memory_, source, bytes, stream_);
  }
  /// Copies `bytes` to the host, when the work before on the stream is done.
  void download(void* target, std::size_t bytes) const {
    if (bytes > 0) copy(target, memory_, bytes, stream_);
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(memory_);
  }

 private:
  Stream stream_;
  void* memory_;
};

}  // namespace accrue::kernels::cuda
