// runtime.h by the CUDA runtime.
#include "accrue/kernels/cuda/check.h"
#include "accrue/kernels/cuda/runtime.h"
#include "accrue/kernels/cuda/stream_timer.h"

#include <cuda.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>

namespace accrue::kernels::cuda {
namespace {

cudaStream_t of(Stream stream) { return static_cast<cudaStream_t>(stream.handle); }
cudaEvent_t of(Event event) { return static_cast<cudaEvent_t>(event.handle); }

/// Errors:  OutOfMemoryError where `status` says so.
void check_memory(cudaError_t status, std::size_t bytes, const char* call) {
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    fail<OutOfMemoryError>("[", call, "] the device must have ", bytes, " bytes left, got fewer");
  }
  check(status, call);
}

struct Devices {
  int count = 0;
  std::string why_none;

  Devices() {
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess && count > 0) return;
    static_cast<void>(cudaGetLastError());
    count = 0;
    why_none = status == cudaErrorInsufficientDriver
                   ? "this machine has no CUDA driver, or an old one"
               : status == cudaErrorNoDevice || status == cudaSuccess
                   ? "this machine has no CUDA device"
                   : std::string("[cudaGetDeviceCount] ") + cudaGetErrorString(status);
  }
};

const Devices& devices() {
  static const Devices the_devices;
  return the_devices;
}

}  // namespace

int num_devices() { return devices().count; }
std::string why_no_device() { return devices().why_none; }

std::string identity(int device) {
  char host[256] = {}, bus[32] = {};
  gethostname(host, sizeof(host) - 1);
  check(cudaDeviceGetPCIBusId(bus, sizeof(bus), device), "cudaDeviceGetPCIBusId");
  return std::string(host) + " " + bus;
}

int current_device() {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

void set_device(int device) { check(cudaSetDevice(device), "cudaSetDevice"); }

/// Asks the driver, which is not linked: programs start on machines without one.
bool has_context(int device) noexcept {
  using GetState = CUresult (*)(CUdevice, unsigned*, int*);
  static const auto get_state = [] {
    constexpr unsigned kSince = 7000;  // CUDA 7.0
    void* call = nullptr;
    cudaDriverEntryPointQueryResult found{};
    static_cast<void>(cudaGetDriverEntryPointByVersion(
        "cuDevicePrimaryCtxGetState", &call, kSince, cudaEnableDefault, &found));
    return reinterpret_cast<GetState>(call);
  }();
  unsigned flags = 0;
  int is_active = 0;
  return get_state != nullptr && get_state(device, &flags, &is_active) == CUDA_SUCCESS &&
         is_active != 0;
}

Stream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return {stream};
}

Event make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return {event};
}
void destroy(Event event) noexcept { static_cast<void>(cudaEventDestroy(of(event))); }

void record(Event event, Stream stream) {
  check(cudaEventRecord(of(event), of(stream)), "cudaEventRecord");
}
void wait(Stream stream, Event event) {
  check(cudaStreamWaitEvent(of(stream), of(event), 0), "cudaStreamWaitEvent");
}
void synchronize(Stream stream) {
  check(cudaStreamSynchronize(of(stream)), "cudaStreamSynchronize");
}
void synchronize(Event event) { check(cudaEventSynchronize(of(event)), "cudaEventSynchronize"); }
bool is_done(Event event) noexcept { return cudaEventQuery(of(event)) != cudaErrorNotReady; }

struct StreamTimer::Marks {
  cudaEvent_t begin = nullptr, end = nullptr;
};
StreamTimer::StreamTimer(Stream stream) : stream_(stream), marks_(new Marks) {
  check(cudaEventCreate(&marks_->begin), "cudaEventCreate");
  check(cudaEventCreate(&marks_->end), "cudaEventCreate");
}
StreamTimer::~StreamTimer() {
  static_cast<void>(cudaEventDestroy(marks_->begin));
  static_cast<void>(cudaEventDestroy(marks_->end));
}
void StreamTimer::start() { check(cudaEventRecord(marks_->begin, of(stream_)), "cudaEventRecord"); }
double StreamTimer::stop() {
  check(cudaEventRecord(marks_->end, of(stream_)), "cudaEventRecord");
  check(cudaEventSynchronize(marks_->end), "cudaEventSynchronize");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, marks_->begin, marks_->end), "cudaEventElapsedTime");
  return milliseconds / 1e3;
}

void* allocate_memory(std::size_t bytes) {
  void* data = nullptr;
  check_memory(cudaMalloc(&data, bytes), bytes, "cudaMalloc");
  return data;
}
void free_memory(void* data) noexcept { static_cast<void>(cudaFree(data)); }

/// Eight sizes per power of two, at least 512 bytes: at most 12.5 % of a block is slack.
std::size_t block_size(std::size_t bytes) {
  constexpr std::size_t kSmallest = 512;
  if (bytes <= 8 * kSmallest)
    return std::max<std::size_t>(1, (bytes + kSmallest - 1) / kSmallest) * kSmallest;
  const std::size_t step = std::bit_ceil(bytes) / 16;
  return (bytes + step - 1) / step * step;
}
void scribble(void*, std::size_t, Stream) {}

void* allocate_pinned(std::size_t bytes) {
  void* data = nullptr;
  check_memory(cudaMallocHost(&data, bytes), bytes, "cudaMallocHost");
  return data;
}
void free_pinned(void* data) noexcept { static_cast<void>(cudaFreeHost(data)); }

void copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, of(stream)), "cudaMemcpyAsync");
  cudaPointerAttributes target{};
  check(cudaPointerGetAttributes(&target, to), "cudaPointerGetAttributes");
  if (target.type == cudaMemoryTypeUnregistered) synchronize(stream);
}

}  // namespace accrue::kernels::cuda
