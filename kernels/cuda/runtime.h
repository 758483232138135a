// What this project uses of the CUDA runtime: one set of names for CUDA and for the simulator.
//
// Errors: DeviceError that names the call, unless a function says otherwise.
#pragma once

#include "accrue/kernels/cuda/stream.h"

#include <cstddef>
#include <string>

namespace accrue::kernels::cuda {

/// GPUs of this machine; 0 without a driver or without one. why_no_device() says which.
int num_devices();
std::string why_no_device();
/// Tells a device from all others, also on other hosts.
std::string identity(int device);

int current_device();
/// Also gives the process a context of the device: hundreds of megabytes on it.
void set_device(int device);
bool has_context(int device) noexcept;

/// Makes a device current on this thread while it lives. It stays current afterwards where the one
/// before has no context, so that the process of a rank uses its own GPU alone.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_;
  bool changes_;
};

// On the current device. Streams last as long as the process.
Stream make_stream();
Event make_event();
void destroy(Event event) noexcept;
void record(Event event, Stream stream);
/// What follows on `stream` waits for the last record() of the event.
void wait(Stream stream, Event event);
/// The host waits. Errors: also those of the work that was queued.
void synchronize(Stream stream);
void synchronize(Event event);
/// Whether the work before the last record() is done.
bool is_done(Event event) noexcept;

/// Memory of the current device. Errors: OutOfMemoryError.
void* allocate_memory(std::size_t bytes);
void free_memory(void* data) noexcept;
/// How many bytes to ask for, so that blocks serve again for other sizes.
std::size_t block_size(std::size_t bytes);
/// Marks bytes that nobody may read again, where that finds mistakes.
void scribble(void* data, std::size_t bytes, Stream stream);

/// Memory of the host that copies from and to devices run beside. Errors: OutOfMemoryError.
void* allocate_pinned(std::size_t bytes);
void free_pinned(void* data) noexcept;

/// Queues a copy between any two places. The source may change at once unless it is pinned or on a
/// device. A copy to memory of the host that is not pinned is done when this returns.
void copy(void* to, const void* from, std::size_t bytes, Stream stream);

}  // namespace accrue::kernels::cuda
