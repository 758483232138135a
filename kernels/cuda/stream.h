// Stream and Event: the queues that launches go to, and places in them.
#pragma once

namespace accrue::kernels::cuda {

/// A cudaStream_t; null is the default stream, which the simulator runs at once.
struct Stream {
  void* handle = nullptr;

  bool operator==(const Stream&) const = default;
};

/// A cudaEvent_t.
struct Event {
  void* handle = nullptr;
};

}  // namespace accrue::kernels::cuda
