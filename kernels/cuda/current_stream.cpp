#include "accrue/kernels/cuda/current_stream.h"

#include "accrue/kernels/cuda/fault.h"
#include "accrue/kernels/cuda/runtime.h"

#include <array>
#include <map>
#include <mutex>

namespace accrue::kernels::cuda {
namespace {

constexpr std::size_t kNumOthers = 8;
constexpr int kNoFault = 0;

/// The streams of all devices, made when they are first asked for. Never destroyed.
class Streams {
 public:
  Stream main(int device) {
    const std::scoped_lock lock(mutex_);
    return made(device, of_[device].main);
  }
  Stream next(int device) {
    const std::scoped_lock lock(mutex_);
    OfDevice& streams = of_[device];
    return made(device, streams.others[streams.next++ % kNumOthers]);
  }

 private:
  struct OfDevice {
    Stream main;
    std::array<Stream, kNumOthers> others{};
    std::size_t next = 0;
  };

  static Stream made(int device, Stream& stream) {
    if (stream.handle == nullptr) {
      const DeviceScope scope(device);
      Stream fresh = make_stream();
      fresh.fault = static_cast<int*>(allocate_memory(sizeof(int)));
      copy(fresh.fault, &kNoFault, sizeof(int), fresh);
      stream = fresh;
    }
    return stream;
  }

  std::mutex mutex_;
  std::map<int, OfDevice> of_;
};

Streams& streams() {
  static Streams* const the_streams = new Streams;
  return *the_streams;
}

/// What StreamScopes chose; absent: the main stream.
std::map<int, Stream>& chosen() {
  thread_local std::map<int, Stream> of_thread;
  return of_thread;
}

}  // namespace

Stream current_stream(int device) {
  const auto found = chosen().find(device);
  const bool is_chosen = found != chosen().end() && found->second.handle != nullptr;
  return is_chosen ? found->second : streams().main(device);
}

void finish(Stream stream) {
  if (stream.fault == nullptr) return synchronize(stream);
  int noted = kNoFault;
  copy(&noted, stream.fault, sizeof noted, stream);  // the host waits for it
  if (noted == kNoFault) return;
  copy(stream.fault, &kNoFault, sizeof noted, stream);
  throw_fault(noted);
}

Stream next_stream(int device) { return streams().next(device); }

StreamScope::StreamScope(int device, Stream stream) : device_(device), before_(chosen()[device]) {
  chosen()[device] = stream;
}
StreamScope::~StreamScope() { chosen()[device_] = before_; }

}  // namespace accrue::kernels::cuda
