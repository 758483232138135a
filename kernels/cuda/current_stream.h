// The stream of a device that a thread queues its work on.
#pragma once

#include "accrue/kernels/cuda/stream.h"

namespace accrue::kernels::cuda {

/// Where this thread queues work for a device: the device's main stream, which all threads share,
/// unless a StreamScope says otherwise.
Stream current_stream(int device);

/// Waits for the work of a stream, of its device, and throws what kernels noted meanwhile.
///
/// Errors:  IndexError of throw_fault(), once; those of synchronize().
void finish(Stream stream);

/// One of a device's few other streams, in turn.
Stream next_stream(int device);

/// Another current stream of a device for this thread while it lives. Tensors that other streams
/// made or read need an event between: record() there and wait() here.
class StreamScope {
 public:
  StreamScope(int device, Stream stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  int device_;
  Stream before_;
};

}  // namespace accrue::kernels::cuda
