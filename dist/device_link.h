// DeviceLink: moves device memory between ranks, without a detour over the host.
#pragma once

#include "accrue/core/device.h"
#include "accrue/core/dtype.h"
#include "accrue/dist/movement.h"

#include <cstdint>
#include <memory>
#include <string>

namespace accrue::dist {

class ProcessGroup;

/// The connection of one rank's GPU to those of the other ranks. Calls queue work where the calling
/// thread queues its work on the device, and return: they come after what it queued before and
/// before what it queues later. The first ones wait until the other ranks come, which connect then.
///
/// Errors:  what broke the link, from every later call: TimeoutError where queued work was not done
///          in time; DistributedError for a rank that is gone or left by abort(). Where work was
///          given up whose results others wait for, also from the next read of the device.
/// Threads: one at a time, but abort() and set_timeout() any.
class DeviceLink {
 public:
  virtual ~DeviceLink() = default;

  /// As ProcessGroup::move(), on device memory. Nothing that a rank sends itself is moved.
  virtual void move(const Movement& movement) = 0;
  /// data = the sum over all ranks, in the order that the transport likes best.
  virtual void all_reduce(void* data, std::int64_t count, DType dtype) = 0;
  /// While the result lives, the calling thread queues its work on the device beside that of other
  /// threads.
  virtual std::shared_ptr<void> use_own_stream() = 0;
  /// A place in the work that the calling thread queued, and waiting for it: what the calling
  /// thread queues later comes after what was queued before the mark.
  virtual std::shared_ptr<void> mark() = 0;
  virtual void wait_for(const std::shared_ptr<void>& mark) = 0;
  /// Throws what broke the link.
  virtual void check() = 0;
  /// How many seconds queued work may take from now on.
  virtual void set_timeout(double seconds) = 0;
  /// Waits until the movements that were queued are done, or the link is broken.
  virtual void drain() noexcept = 0;
  /// Queued movements that do not end within a second end undone on this rank; the others learn of
  /// it.
  virtual void abort(const std::string& reason) noexcept = 0;
};

/// What connects devices: NCCL, in the CUDA part of the library.
class DeviceTransport {
 public:
  virtual ~DeviceTransport() = default;

  /// Tells one GPU from another, on any host. Errors: DeviceError where `device` cannot be used.
  virtual std::string identity(Device device) = 0;
  /// What all ranks must pass to connect(); one rank calls this.
  virtual std::string make_id() = 0;
  /// Collective. Errors: DeviceError; TimeoutError; DistributedError when the group is left.
  virtual std::unique_ptr<DeviceLink> connect(const std::string& id,
                                              const ProcessGroup& group,
                                              Device device) = 0;
};

/// That of the CUDA part, which is loaded by the first call.
/// Errors: DeviceError where this build or machine has no CUDA.
DeviceTransport& device_transport();

/// Connects the devices of a group, one rank per GPU. Collective. Null where ranks share a GPU and
/// `may_share`.
///
/// Errors:  DeviceError with one text on all ranks, naming the rank without a usable GPU or the two
///          ranks that share one; those of the group.
std::unique_ptr<DeviceLink> connect_devices(ProcessGroup& group,
                                            DeviceTransport& transport,
                                            Device device,
                                            bool may_share = false);

}  // namespace accrue::dist
