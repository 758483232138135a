#include "accrue/kernels/cuda/current_stream.h"

#include "accrue/kernels/cuda/fault.h"
#include "accrue/kernels/cuda/runtime.h"

#include <map>
#include <mutex>
#include <utility>

namespace accrue::kernels::cuda {
namespace {

constexpr int kNoFault = 0;

/// The streams of all devices, made when they are first asked for. Never destroyed.
class Streams {
 public:
  Stream main(int device) {
    const std::scoped_lock lock(mutex_);
    return main_of(device);
  }
  std::vector<Stream> all(int device) {
    const std::scoped_lock lock(mutex_);
    main_of(device);
    return of_[device].all;
  }
  Stream take(int device) {
    const std::scoped_lock lock(mutex_);
    main_of(device);
    std::vector<Stream>& unused = of_[device].unused;
    if (unused.empty()) return made(device);
    const Stream stream = unused.back();
    unused.pop_back();
    return stream;
  }
  void give_back(int device, Stream stream) {
    const std::scoped_lock lock(mutex_);
    of_[device].unused.push_back(stream);
  }
  void note_lost(int device, std::exception_ptr reason) {
    const std::scoped_lock lock(mutex_);
    of_[device].lost = std::move(reason);
  }
  std::exception_ptr take_lost(int device) {
    const std::scoped_lock lock(mutex_);
    return std::exchange(of_[device].lost, nullptr);
  }

 private:
  struct OfDevice {
    std::vector<Stream> all;     ///< the main stream first
    std::vector<Stream> unused;  ///< of all
    std::exception_ptr lost;     ///< why work ended undone
  };

  Stream main_of(int device) {
    std::vector<Stream>& all = of_[device].all;
    return all.empty() ? made(device) : all.front();
  }
  Stream made(int device) {
    const DeviceScope scope(device);
    Stream stream = make_stream();
    stream.fault = static_cast<int*>(allocate_memory(sizeof(int)));
    copy(stream.fault, &kNoFault, sizeof(int), stream);
    of_[device].all.push_back(stream);
    return stream;
  }

  std::mutex mutex_;
  std::map<int, OfDevice> of_;
};

Streams& streams() {
  static Streams* const the_streams = new Streams;
  return *the_streams;
}

/// Needs no destructor: tensors in static objects are freed when thread_local ones are gone.
thread_local StreamScope* innermost = nullptr;

}  // namespace

Stream current_stream(int device) {
  for (const StreamScope* scope = innermost; scope != nullptr; scope = scope->outer_) {
    if (scope->device_ == device) return scope->stream_;
  }
  return streams().main(device);
}

std::vector<Stream> streams_of(int device) { return streams().all(device); }

void finish(int device, Stream stream) {
  int noted = kNoFault;
  copy(&noted, stream.fault, sizeof noted, stream);  // the host waits for it
  if (const std::exception_ptr lost = streams().take_lost(device)) std::rethrow_exception(lost);
  if (noted == kNoFault) return;
  copy(stream.fault, &kNoFault, sizeof noted, stream);
  throw_fault(noted);
}

void note_lost_work(int device, std::exception_ptr reason) noexcept {
  streams().note_lost(device, std::move(reason));
}

OwnStream::OwnStream(int device) : device_(device), stream_(streams().take(device)) {}
OwnStream::~OwnStream() { streams().give_back(device_, stream_); }

StreamScope::StreamScope(int device, Stream stream)
    : device_(device), stream_(stream), outer_(std::exchange(innermost, this)) {}
StreamScope::~StreamScope() { innermost = outer_; }

}  // namespace accrue::kernels::cuda
