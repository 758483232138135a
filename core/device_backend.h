// DeviceBackend: what the code for CUDA devices offers to tensors, and where it is found.
#pragma once

#include "accrue/core/device.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace accrue {

class Tensor;

namespace kernels {
struct LaunchTable;  // kernels/launch.h
}

/// Memory, copies and kernels of the CUDA devices. Work is queued: it runs in the order of the
/// calls, later. Whatever the host reads is complete when a call returns.
/// Threads: safe.
class DeviceBackend {
 public:
  /// How many devices may be used; 0 where there is none or no driver.
  virtual int num_devices() = 0;
  /// Why there is none, for people.
  virtual std::string why_none() = 0;

  /// Uninitialised bytes on a device. Errors: OutOfMemoryError, DeviceError.
  virtual std::byte* allocate(std::int64_t bytes, Device device) = 0;
  /// Gives bytes back; work that was queued before may still use them.
  virtual void free(std::byte* data) noexcept = 0;

  /// Copies bytes; one side may be the host. Errors: DeviceError; where the host reads, also the
  /// IndexError that a kernel before noted, and why work whose results may be read was given up.
  virtual void copy_bytes(
      void* to, Device to_device, const void* from, Device from_device, std::int64_t bytes) = 0;
  /// Copies elements between tensors of one shape and device, in any layouts and dtypes.
  /// Errors: ValueError where an integer type does not hold a value.
  virtual void copy_elements(Tensor& to, const Tensor& from) = 0;
  virtual void fill(Tensor& to, double value) = 0;

  /// Waits until all work that any thread queued is done. Errors: DeviceError when some of it
  /// failed; those of copy_bytes() where the host reads.
  virtual void synchronize(Device device) = 0;

  virtual const kernels::LaunchTable& launchers() const = 0;

 protected:
  ~DeviceBackend() = default;  // lives as long as the process
};

/// The back end of a CUDA device, loaded at the first call.
/// Errors: DeviceError naming `operation` where this build or machine does not have the device.
DeviceBackend& backend_of(Device device, const char* operation);

/// A function that the CUDA part exports, where it is a shared object that is loaded; else null.
void* cuda_part_symbol(const char* name) noexcept;

/// How many CUDA devices can be used; 0 in builds and on machines without. Never throws.
int cuda_device_count() noexcept;
/// Why there is no CUDA device: "this build has no CUDA", "no CUDA driver", ...; empty if there is.
std::string why_no_cuda();

/// Waits for the work that was queued on a device; nothing for the CPU.
/// Errors: IndexError, once, of a kernel that met an index out of range; DeviceError.
void synchronize(Device device);

}  // namespace accrue
