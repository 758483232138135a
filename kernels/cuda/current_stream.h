// The stream of a device that a thread queues its work on.
#pragma once

#include "accrue/kernels/cuda/stream.h"

#include <exception>
#include <vector>

namespace accrue::kernels::cuda {

/// Where this thread queues work for a device: the device's main stream, which all threads share,
/// unless a StreamScope says otherwise.
Stream current_stream(int device);
/// Every stream of a device that was ever asked for.
std::vector<Stream> streams_of(int device);

/// Waits for the work of a stream, of its device, and throws what kernels noted meanwhile.
///
/// Errors:  what note_lost_work() noted, once; IndexError of throw_fault(), once; those of
///          synchronize().
void finish(int device, Stream stream);

/// Work that others wait for ended undone: whoever next waits for the device is told `reason`.
void note_lost_work(int device, std::exception_ptr reason) noexcept;

/// A stream that nobody else has while this lives; then it serves again.
class OwnStream {
 public:
  explicit OwnStream(int device);
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  operator Stream() const { return stream_; }  // NOLINT(google-explicit-constructor): it is one

 private:
  int device_;
  Stream stream_;
};

/// Another current stream of a device for this thread while it lives. Tensors that other streams
/// made or read need an event between: record() there and wait() here.
class StreamScope {
 public:
  StreamScope(int device, Stream stream);
  /// On the thread that made it.
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  friend Stream current_stream(int device);

  int device_;
  Stream stream_;
  StreamScope* outer_;
};

}  // namespace accrue::kernels::cuda
