// Gpu: the stream and the events by which NCCL's work is ordered with that of the device.
#pragma once

#include "accrue/core/device.h"

#include <nccl.h>

#include <string>

namespace accrue::dist::nccl {

/// Errors:  DeviceError naming the call of CUDA that failed.
class Gpu {
 public:
  /// Makes the device current on this thread.
  explicit Gpu(Device device);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  /// Tells this GPU from others on this and other hosts.
  std::string identity() const;
  cudaStream_t stream() const { return stream_; }
  /// Work on stream() comes after what the device has queued.
  void begin();
  /// What the device queues from now on comes after the work on stream().
  void end();
  /// Whether the work before the last end() is done.
  bool is_done() noexcept;

 private:
  Device device_;
  cudaStream_t stream_ = nullptr;
  void *ready_ = nullptr, *done_ = nullptr;  ///< events
};

}  // namespace accrue::dist::nccl
