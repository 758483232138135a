// runtime.h by the CUDA runtime.
#include "accrue/kernels/cuda/check.h"
#include "accrue/kernels/cuda/runtime.h"
#include "accrue/kernels/cuda/stream_timer.h"

#include <cuda.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

namespace accrue::kernels::cuda {
namespace {

cudaStream_t of(Stream stream) { return static_cast<cudaStream_t>(stream.handle); }
cudaEvent_t of(Event event) { return static_cast<cudaEvent_t>(event.handle); }

/// Errors:  OutOfMemoryError where `status` says so.
void check_memory(
    cudaError_t status, const char* call, const char* owner, std::size_t bytes, const char* use) {
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    fail<OutOfMemoryError>("[", call, "] ", owner, " must have ", bytes, use, ", got fewer");
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

/// Whether CUDA does not know of this memory: the host's, not pinned.
bool is_pageable(const void* place) {
  cudaPointerAttributes its{};
  check(cudaPointerGetAttributes(&its, place), "cudaPointerGetAttributes");
  return its.type == cudaMemoryTypeUnregistered;
}

/// Pinned memory through which small uploads go. The source may change at once then, while CUDA
/// may still read memory that is not pinned after a call that copies it, where GPUs read the
/// host's pages themselves.
class Staging {
 public:
  static constexpr std::size_t kBytes = 64 << 10;  // at most, of an upload

  void send(void* to, const void* from, std::size_t bytes, Stream stream) {
    const Key key{stream.handle, std::bit_ceil(std::max<std::size_t>(bytes, 512))};
    const Piece piece = take(key);
    std::memcpy(piece.data, from, bytes);
    const cudaError_t status =
        cudaMemcpyAsync(to, piece.data, bytes, cudaMemcpyDefault, of(stream));
    if (status == cudaSuccess) record(piece.sent, stream);
    {
      const std::scoped_lock lock(mutex_);
      pieces_[key].push_back(piece);
    }
    check(status, "cudaMemcpyAsync");
  }

 private:
  using Key = std::pair<void*, std::size_t>;  ///< stream, whose copies end in order, and size
  struct Piece {
    void* data;
    Event sent;  ///< what was copied last
  };

  /// The piece that was used longest ago, or a new one while that is on its way.
  Piece take(const Key& key) {
    {
      const std::scoped_lock lock(mutex_);
      std::deque<Piece>& pieces = pieces_[key];
      if (!pieces.empty() && is_done(pieces.front().sent)) {
        const Piece piece = pieces.front();
        pieces.pop_front();
        return piece;
      }
    }
    return {allocate_pinned(key.second), make_event()};
  }

  std::mutex mutex_;
  std::map<Key, std::deque<Piece>> pieces_;
};

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
    constexpr const char* kName = "cuDevicePrimaryCtxGetState";
    void* call = nullptr;
    cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
    constexpr unsigned kSince = 7000;  // CUDA 7.0
    static_cast<void>(
        cudaGetDriverEntryPointByVersion(kName, &call, kSince, cudaEnableDefault, &found));
#else
    static_cast<void>(cudaGetDriverEntryPoint(kName, &call, cudaEnableDefault, &found));
#endif
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
bool is_done(Event event) noexcept {
  const bool is_ahead = cudaEventQuery(of(event)) == cudaErrorNotReady;
  if (is_ahead) static_cast<void>(cudaGetLastError());  // it is no error
  return !is_ahead;
}

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
  check_memory(cudaMalloc(&data, bytes), "cudaMalloc", "the device", bytes, " bytes left");
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
  check_memory(cudaMallocHost(&data, bytes), "cudaMallocHost", "the host", bytes, " bytes to pin");
  return data;
}
void free_pinned(void* data) noexcept { static_cast<void>(cudaFreeHost(data)); }

void copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  static auto* const staging = new Staging;  // outlives the last copies
  const bool from_host = is_pageable(from), to_host = is_pageable(to);
  if (from_host && !to_host && bytes <= Staging::kBytes)
    return staging->send(to, from, bytes, stream);
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, of(stream)), "cudaMemcpyAsync");
  if (from_host || to_host) synchronize(stream);
}

}  // namespace accrue::kernels::cuda
