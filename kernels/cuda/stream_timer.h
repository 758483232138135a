// StreamTimer: how long work on a stream takes.
#pragma once

#include "accrue/kernels/cuda/stream.h"

#include <memory>

namespace accrue::kernels::cuda {

/// The time that work on a stream of the current device takes.
class StreamTimer {
 public:
  explicit StreamTimer(Stream stream);
  ~StreamTimer();
  StreamTimer(const StreamTimer&) = delete;
  StreamTimer& operator=(const StreamTimer&) = delete;

  void start();
  /// Waits. Seconds from when the stream reached start() to when it gets here.
  double stop();

 private:
  struct Marks;
  Stream stream_;
  std::unique_ptr<Marks> marks_;
};

}  // namespace accrue::kernels::cuda
