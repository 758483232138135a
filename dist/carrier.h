// Carrier: moves partial sums between ranks where they lie, on the host or on a device.
#pragma once

#include "accrue/core/tensor.h"
#include "accrue/dist/device_link.h"
#include "accrue/dist/process_group.h"

namespace accrue::dist {

/// A group's moves on memory of one kind. Calls on a device queue work, in order.
class Carrier {
 public:
  virtual ~Carrier() = default;
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  /// As those of ProcessGroup. `fits`: no piece exceeds step_bytes() on any rank.
  virtual void move(const Movement& movement) = 0;
  virtual std::vector<std::span<const std::byte>> look(
      std::span<const std::span<const std::byte>> outgoing,
      std::span<const std::size_t> sizes,
      bool fits) = 0;
  virtual std::int64_t step_bytes() const = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual Device device() const { return Device::cpu(); }
  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }

 protected:
  explicit Carrier(ProcessGroup& group) : group_(group) {}
  ProcessGroup& group_;
};

/// On the host.
class HostCarrier final : public Carrier {
 public:
  explicit HostCarrier(ProcessGroup& group) : Carrier(group) {}
  void move(const Movement& movement) override { group_.move(movement); }
  std::vector<std::span<const std::byte>> look(std::span<const std::span<const std::byte>> outgoing,
                                               std::span<const std::size_t> sizes,
                                               bool fits) override;
  std::int64_t step_bytes() const override { return group_.step_bytes(); }
  void copy(void* to, const void* from, std::size_t bytes) override;
};

/// On a device; `link` may be null where there is one rank, which moves nothing.
class DeviceCarrier final : public Carrier {
 public:
  DeviceCarrier(ProcessGroup& group, DeviceLink* link, Device device)
      : Carrier(group), link_(link), device_(device) {}
  void move(const Movement& movement) override {
    if (link_) link_->move(movement);
  }
  std::vector<std::span<const std::byte>> look(std::span<const std::span<const std::byte>> outgoing,
                                               std::span<const std::size_t> sizes,
                                               bool fits) override;
  std::int64_t step_bytes() const override { return std::int64_t{1} << 40; }
  void copy(void* to, const void* from, std::size_t bytes) override;
  Device device() const override { return device_; }

 private:
  DeviceLink* link_;
  Device device_;
  Tensor looked_at_;
};

}  // namespace accrue::dist
