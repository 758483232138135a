// runtime.h by the simulator: lazy streams, fenced memory.
#include "accrue/core/error.h"
#include "accrue/kernels/cuda/runtime.h"
#include "accrue/kernels/cuda/stream_timer.h"
#include "accrue/kernels/simt/devices.h"
#include "accrue/kernels/simt/streams.h"

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace accrue::kernels::cuda {
namespace {

constexpr std::size_t kLargestMark = std::size_t{64} << 20;

simt::Stream* of(Stream stream) { return static_cast<simt::Stream*>(stream.handle); }
simt::Event* of(Event event) { return static_cast<simt::Event*>(event.handle); }

/// The pinned and the device's blocks: where they begin and end.
class Blocks {
 public:
  void add(void* data, std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    ends_[static_cast<std::byte*>(data)] = static_cast<std::byte*>(data) + bytes;
  }
  void remove(void* data) {
    const std::scoped_lock lock(mutex_);
    ends_.erase(static_cast<std::byte*>(data));
  }
  bool contain(const void* place) const {
    const std::scoped_lock lock(mutex_);
    auto* const at = const_cast<std::byte*>(static_cast<const std::byte*>(place));
    const auto behind = ends_.upper_bound(at);
    return behind != ends_.begin() && at <= std::prev(behind)->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::byte*, std::byte*> ends_;
};

/// Never destroyed, as the queues.
Blocks& blocks() {
  static Blocks* const the_blocks = new Blocks;
  return *the_blocks;
}

}  // namespace

int num_devices() { return simt::kNumDevices; }
std::string why_no_device() { return ""; }
std::string identity(int device) { return text("simulated cuda:", device); }

int current_device() { return simt::current_device(); }
void set_device(int device) { simt::set_device(device); }
bool has_context(int device) noexcept { return simt::has_context(device); }

Stream make_stream() {
  simt::use_device();
  return {simt::make_stream()};
}
Event make_event() {
  simt::use_device();
  return {simt::make_event()};
}
void destroy(Event event) noexcept {
  simt::use_device();
  simt::destroy(of(event));
}
void record(Event event, Stream stream) {
  simt::use_device();
  simt::record(of(event), of(stream));
}
void wait(Stream stream, Event event) {
  simt::use_device();
  simt::wait(of(stream), of(event));
}
void synchronize(Stream stream) {
  simt::use_device();
  simt::synchronize(of(stream));
}
void synchronize(Event event) {
  simt::use_device();
  simt::synchronize(of(event));
}
bool is_done(Event event) noexcept {
  simt::use_device();
  return simt::is_done(of(event));
}

struct StreamTimer::Marks {
  std::chrono::steady_clock::time_point begin, end;
};
StreamTimer::StreamTimer(Stream stream) : stream_(stream), marks_(new Marks) {}
StreamTimer::~StreamTimer() = default;
void StreamTimer::start() {
  simt::enqueue(of(stream_),
                [marks = marks_.get()] { marks->begin = std::chrono::steady_clock::now(); });
}
double StreamTimer::stop() {
  simt::enqueue(of(stream_),
                [marks = marks_.get()] { marks->end = std::chrono::steady_clock::now(); });
  synchronize(stream_);
  return std::chrono::duration<double>(marks_->end - marks_->begin).count();
}

void* allocate_memory(std::size_t bytes) {
  simt::use_device();
  void* const data = simt::allocate_device(bytes);
  blocks().add(data, bytes);
  return data;
}
void free_memory(void* data) noexcept {
  simt::use_device();
  blocks().remove(data);
  simt::free_device(data);
}
/// Exact, so that fences are where tensors end.
std::size_t block_size(std::size_t bytes) { return bytes; }

void scribble(void* data, std::size_t bytes, Stream stream) {
  if (bytes > kLargestMark) return;
  simt::enqueue(of(stream), [=] { std::memset(data, 0xff, bytes); });
}

void* allocate_pinned(std::size_t bytes) {
  void* const data = ::operator new (bytes, std::align_val_t{64});
  blocks().add(data, bytes);
  return data;
}
void free_pinned(void* data) noexcept {
  blocks().remove(data);
  ::operator delete (data, std::align_val_t{64});
}

void copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  simt::use_device();
  if (blocks().contain(from)) {
    simt::enqueue(of(stream), [=] { std::memcpy(to, from, bytes); });
  } else {
    const auto* const first = static_cast<const std::byte*>(from);
    simt::enqueue(of(stream), [=, staged = std::vector<std::byte>(first, first + bytes)] {
      std::memcpy(to, staged.data(), bytes);
    });
  }
  if (!blocks().contain(to)) synchronize(stream);
}

}  // namespace accrue::kernels::cuda
