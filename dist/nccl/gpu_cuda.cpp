// Gpu with the CUDA runtime.
#include "accrue/core/error.h"
#include "accrue/dist/nccl/gpu.h"

#include <cuda_runtime.h>
#include <unistd.h>

namespace accrue::dist::nccl {
namespace {

void check(cudaError_t status, const char* call) {
  ACCRUE_CHECK(status == cudaSuccess,
               DeviceError,
               call,
               cudaGetErrorName(status),
               ": ",
               cudaGetErrorString(status),
               "; every rank needs an NVIDIA GPU and its driver, else keep tensors on the CPU");
}

cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }

cudaEvent_t make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return event;
}

}  // namespace

Gpu::Gpu(Device device) : device_(device) {
  check(cudaSetDevice(device.index), "cudaSetDevice");
  int lowest = 0, highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
  check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, highest),
        "cudaStreamCreateWithPriority");
  ready_ = make_event();
  done_ = make_event();
}

Gpu::~Gpu() {
  if (ready_ != nullptr) cudaEventDestroy(event_of(ready_));
  if (done_ != nullptr) cudaEventDestroy(event_of(done_));
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

std::string Gpu::identity() const {
  char host[256] = {}, bus[32] = {};
  gethostname(host, sizeof(host) - 1);
  check(cudaDeviceGetPCIBusId(bus, sizeof(bus), device_.index), "cudaDeviceGetPCIBusId");
  return text(host, " ", bus);
}

void Gpu::begin() {
  check(cudaSetDevice(device_.index), "cudaSetDevice");
  check(cudaEventRecord(event_of(ready_), nullptr), "cudaEventRecord");
  check(cudaStreamWaitEvent(stream_, event_of(ready_), 0), "cudaStreamWaitEvent");
}

void Gpu::end() {
  check(cudaEventRecord(event_of(done_), stream_), "cudaEventRecord");
  check(cudaStreamWaitEvent(nullptr, event_of(done_), 0), "cudaStreamWaitEvent");
}

bool Gpu::is_done() noexcept { return cudaEventQuery(event_of(done_)) == cudaSuccess; }

}  // namespace accrue::dist::nccl
