// Stream: the queue that launches go to.
#pragma once

namespace accrue::kernels::cuda {

/// A cudaStream_t; null is the default stream.
struct Stream {
  void* handle = nullptr;
};

}  // namespace accrue::kernels::cuda
