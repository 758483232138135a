// Stream and Event: the queues that launches go to, and places in them.
#pragma once

namespace accrue::kernels::cuda {

/// A cudaStream_t; null is the default stream, which the simulator runs at once.
struct Stream {
  void* handle = nullptr;
  /// Device memory, 0 at first, in which kernels note what they cannot throw: the host reads it
  /// when it next waits, and calls throw_fault(). Null: nothing is noted.
  int* fault = nullptr;

  bool operator==(const Stream& other) const { return handle == other.handle; }
};

/// A cudaEvent_t.
struct Event {
  void* handle = nullptr;
};

}  // namespace accrue::kernels::cuda
