// The CUDA back end of tensors: memory from the caching allocator, copies on the current stream.
#include "accrue/core/device_backend.h"
#include "accrue/core/tensor.h"
#include "accrue/kernels/copy.h"
#include "accrue/kernels/cuda/allocator.h"
#include "accrue/kernels/cuda/current_stream.h"
#include "accrue/kernels/cuda/launchers.h"
#include "accrue/kernels/cuda/runtime.h"

namespace accrue::kernels::cuda {
namespace {

/// Makes what comes next on `after` wait for what was queued on `before`.
void order(Device of_before, Stream before, Device of_after, Stream after) {
  const DeviceScope scope(of_before.index);
  const Event event = make_event();
  record(event, before);
  const DeviceScope then(of_after.index);
  wait(after, event);
  destroy(event);
}

class Backend final : public DeviceBackend {
 public:
  int num_devices() override { return cuda::num_devices(); }
  std::string why_none() override { return why_no_device(); }

  std::byte* allocate(std::int64_t bytes, Device device) override {
    const DeviceScope scope(device.index);
    return static_cast<std::byte*>(cuda::allocate(
        static_cast<std::size_t>(bytes), device.index, current_stream(device.index)));
  }
  void free(std::byte* data) noexcept override {
    cuda::free(data, current_stream(device_of(data)));
  }

  void copy_bytes(void* to,
                  Device to_device,
                  const void* from,
                  Device from_device,
                  std::int64_t bytes) override {
    if (bytes == 0) return;
    const Device device = to_device.is_cpu() ? from_device : to_device;
    const DeviceScope scope(device.index);
    const Stream stream = current_stream(device.index);
    const bool between = !to_device.is_cpu() && !from_device.is_cpu() && to_device != from_device;
    const Stream other = between ? current_stream(from_device.index) : stream;
    if (between) order(from_device, other, device, stream);
    copy(to, from, static_cast<std::size_t>(bytes), stream);
    if (to_device.is_cpu()) finish(device.index, stream);
    if (between) order(device, stream, from_device, other);
  }

  void copy_elements(Tensor& to, const Tensor& from) override {
    launch_on(to.device(), Copy{from, to});
  }
  void fill(Tensor& to, double value) override { launch_on(to.device(), Fill{to, value}); }

  void synchronize(Device device) override {
    const DeviceScope scope(device.index);
    for (const Stream stream : streams_of(device.index)) finish(device.index, stream);
  }

  const LaunchTable& launchers() const override { return cuda::launchers(); }
};

}  // namespace
}  // namespace accrue::kernels::cuda

extern "C" accrue::DeviceBackend* accrue_cuda_backend();

accrue::DeviceBackend* accrue_cuda_backend() {
  static accrue::kernels::cuda::Backend backend;
  return &backend;
}
