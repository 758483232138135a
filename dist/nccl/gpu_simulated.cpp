// Gpu in the simulator, where each call is done when it returns.
#include "accrue/core/error.h"
#include "accrue/dist/nccl/gpu.h"
#include "accrue/kernels/simt/nccl/device.h"

namespace accrue::dist::nccl {

Gpu::Gpu(Device device) : device_(device) { simt::nccl::current_device() = device.index; }
Gpu::~Gpu() = default;

std::string Gpu::identity() const { return text("simulated ", device_.str()); }
void Gpu::begin() {}
void Gpu::end() {}
bool Gpu::is_done() noexcept { return true; }

}  // namespace accrue::dist::nccl
