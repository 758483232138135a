#include "accrue/tests/ptx/runtime.h"

#include "accrue/core/error.h"
#include "accrue/kernels/simt/streams.h"
#include "accrue/tests/ptx/live_blocks.h"

#include <cstring>
#include <map>
#include <memory>
#include <utility>

namespace accrue::ptx {
namespace {

struct Runtime {
  std::string failing;  ///< a call
  cudaError_t status = cudaSuccess;
  std::map<const std::byte*, std::unique_ptr<std::byte[]>> pinned;
  std::map<const std::byte*, std::size_t> pinned_sizes;
  int num_pinned = 0;
};

/// Never destroyed: it serves until the program ends.
Runtime& runtime() {
  static Runtime* const the_runtime = new Runtime;
  return *the_runtime;
}

/// Does what a call is for, unless it is to fail.
template <class Work>
cudaError_t answer(const char* call, const Work& work) {
  if (runtime().failing == call) return runtime().status;
  work();
  return cudaSuccess;
}

LiveBlock pinned_before(const std::byte* at) {
  const auto& sizes = runtime().pinned_sizes;
  const auto behind = sizes.upper_bound(at);
  if (behind == sizes.begin()) return {};
  const auto& [begin, bytes] = *std::prev(behind);
  return {begin, bytes};
}

/// Whether a copy of that many bytes from or to here ends where it began.
bool is_whole(const void* place, std::size_t bytes) {
  const auto* const at = static_cast<const std::byte*>(place);
  for (const LiveBlock& block : {block_before(at), pinned_before(at)}) {
    if (block.holds(at, 1) && !block.holds(at, bytes)) return false;
  }
  return true;
}

simt::Stream* of(cudaStream_t stream) { return reinterpret_cast<simt::Stream*>(stream); }
simt::Event* of(cudaEvent_t event) { return reinterpret_cast<simt::Event*>(event); }

}  // namespace

FailingCall::FailingCall(std::string call, cudaError_t status) {
  runtime().failing = std::move(call);
  runtime().status = status;
}
FailingCall::~FailingCall() { runtime().failing.clear(); }

int num_pinned() { return runtime().num_pinned; }

}  // namespace accrue::ptx

namespace simt = accrue::simt;
using namespace accrue::ptx;

extern "C" {

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  try {
    return answer(__func__, [&] { *data = simt::allocate_device(bytes); });
  } catch (const accrue::OutOfMemoryError&) {
    return cudaErrorMemoryAllocation;
  }
}
cudaError_t cudaFree(void* data) {
  return answer(__func__, [&] { simt::free_device(data); });
}
cudaError_t cudaMallocHost(void** data, std::size_t bytes) {
  return answer(__func__, [&] {
    auto block = std::make_unique<std::byte[]>(bytes);
    *data = block.get();
    runtime().pinned_sizes[block.get()] = bytes;
    runtime().pinned[block.get()] = std::move(block);
    ++runtime().num_pinned;
  });
}
cudaError_t cudaFreeHost(void* data) {
  return answer(__func__, [&] {
    runtime().pinned_sizes.erase(static_cast<std::byte*>(data));
    runtime().pinned.erase(static_cast<std::byte*>(data));
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* its, const void* place) {
  return answer(__func__, [&] {
    const auto* const at = static_cast<const std::byte*>(place);
    its->type = block_before(at).holds(at, 1)    ? cudaMemoryTypeDevice
                : pinned_before(at).holds(at, 1) ? cudaMemoryTypeHost
                                                 : cudaMemoryTypeUnregistered;
  });
}
cudaError_t cudaMemcpyAsync(
    void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  if (!is_whole(to, bytes) || !is_whole(from, bytes)) return cudaErrorInvalidValue;
  return answer(__func__,
                [&] { simt::enqueue(of(stream), [=] { std::memcpy(to, from, bytes); }); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return answer(__func__, [&] { *stream = reinterpret_cast<cudaStream_t>(simt::make_stream()); });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return answer(__func__, [&] { simt::synchronize(of(stream)); });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return answer(__func__, [&] { simt::wait(of(stream), of(event)); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return answer(__func__, [&] { *event = reinterpret_cast<cudaEvent_t>(simt::make_event()); });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return answer(__func__, [&] { simt::destroy(of(event)); });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return answer(__func__, [&] { simt::record(of(event), of(stream)); });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return answer(__func__, [&] { simt::synchronize(of(event)); });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return simt::is_done(of(event)) ? cudaSuccess : cudaErrorNotReady;
}

}  // extern "C"
