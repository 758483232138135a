// Streams, events and device memory: what may overtake what, and who may reuse what.
#include "accrue/kernels/simt/streams.h"

#include "accrue/core/config.h"
#include "accrue/core/device_backend.h"
#include "accrue/core/error.h"
#include "accrue/core/tensor.h"
#include "accrue/kernels/cuda/allocator.h"
#include "accrue/kernels/cuda/current_stream.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/cuda/platform.h"
#include "accrue/kernels/cuda/runtime.h"
#include "accrue/tests/support/doctest.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <thread>
#include <vector>

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::kernels::cuda;

namespace {

std::vector<simt::StreamOptions> stream_orders() {
  std::vector<simt::StreamOptions> orders = {{simt::StreamOrder::lazy}, {simt::StreamOrder::eager}};
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    orders.push_back({simt::StreamOrder::random, seed});
  }
  return orders;
}

/// Adds the elements of `x` to one number.
void add_up(const Workspace& x, std::int64_t count, const Workspace& sum, Stream stream) {
  launch_cuda(RowSum<float>{row_major<const float>(x.as<float>(), 1, count), sum.as<float>()},
              stream);
}

float fetch(const Workspace& memory) {
  float value = 0;
  memory.download(&value, sizeof(value));
  return value;
}

/// x = {1, 2} is written on one stream and added up on another, with or without an event between.
float sum_on_another_stream(bool waits) {
  const OwnStream writer(0), reader(0);
  Workspace x(2 * sizeof(float), writer), sum(sizeof(float), reader);
  const float values[] = {1, 2};
  x.upload(values, sizeof(values));
  const Event event = make_event();
  record(event, writer);
  if (waits) wait(reader, event);
  destroy(event);
  add_up(x, 2, sum, reader);
  const float result = fetch(sum);
  synchronize(writer);
  return result;
}

struct DefaultOrder {
  ~DefaultOrder() { simt::set_stream_options({}); }
};

}  // namespace

TEST_CASE("cuda.streams: an event orders two streams, however they overtake each other") {
  const DefaultOrder later;
  int num_orders = 0;
  for (const simt::StreamOptions& order : stream_orders()) {
    simt::set_stream_options(order);
    CHECK(sum_on_another_stream(true) == 3);
    ++num_orders;
  }
  MESSAGE(num_orders, " orders of streams");
}

TEST_CASE("cuda.streams: a missing wait is seen as NaN") {
  const DefaultOrder later;
  int num_right = 0, num_nan = 0;
  for (const simt::StreamOptions& order : stream_orders()) {
    simt::set_stream_options(order);
    const float sum = sum_on_another_stream(false);
    num_right += sum == 3;
    num_nan += sum != sum;
  }
  CHECK(num_right > 0);
  CHECK(num_nan > 0);
  CHECK(num_right + num_nan == static_cast<int>(stream_orders().size()));
}

TEST_CASE("cuda.streams: work runs when somebody waits, in the order of its stream") {
  const OwnStream stream(0);
  auto* const pinned = static_cast<float*>(allocate_pinned(sizeof(float)));
  auto* const result = static_cast<float*>(allocate_pinned(sizeof(float)));
  *pinned = 1;
  *result = 0;
  Workspace memory(sizeof(float), stream);
  copy(memory.as<float>(), pinned, sizeof(float), stream);
  *pinned = 2;  // too early: the copy has not run
  copy(result, memory.as<float>(), sizeof(float), stream);
  CHECK(*result == 0);
  synchronize(stream);
  CHECK(*result == 2);
  float pageable = 3;
  copy(memory.as<float>(), &pageable, sizeof(float), stream);
  pageable = 4;  // may change at once
  CHECK(fetch(memory) == 3);
  free_pinned(pinned);
  free_pinned(result);
}

TEST_CASE("cuda.streams: a fault of a kernel comes where somebody waits, later work is lost") {
  const OwnStream stream(0);
  Workspace x(sizeof(float), stream), sum(sizeof(float), stream);
  const Event event = make_event();
  launch(
      {.name = "too_large", .threads = 4096, .stream = stream}, +[](float*) {}, x.as<float>());
  record(event, stream);
  CHECK_THROWS_AS(synchronize(stream), simt::KernelFault);
  CHECK_THROWS_AS(synchronize(event), DeviceError);
  destroy(event);
  synchronize(stream);
}

TEST_CASE("cuda.streams: each thread has its own current stream") {
  const Stream main = current_stream(0);
  const OwnStream other(0);
  CHECK(main != other);
  CHECK(current_stream(1) != main);
  const StreamScope scope(0, other);
  CHECK(current_stream(0) == other);
  Stream seen;
  std::thread([&] { seen = current_stream(0); }).join();
  CHECK(seen == main);
  {
    const StreamScope inner(0, main);
    CHECK(current_stream(0) == main);
  }
  CHECK(current_stream(0) == other);
}

TEST_CASE("cuda.streams: a device's other streams are nobody else's while they live") {
  std::set<void*> handles = {current_stream(2).handle};
  {
    std::vector<std::unique_ptr<OwnStream>> streams;
    for (int i = 0; i < 12; ++i) {
      streams.push_back(std::make_unique<OwnStream>(2));
      handles.insert(Stream(*streams.back()).handle);
    }
    CHECK(handles.size() == 13);
  }
  const OwnStream again(2);
  handles.insert(Stream(again).handle);
  CHECK(handles.size() == 13);
  CHECK(streams_of(2).size() == 13);
}

TEST_CASE("cuda.streams: a device is waited for on all of its streams") {
  const Device device = Device::cuda(3);
  auto* const result = static_cast<float*>(allocate_pinned(sizeof(float)));
  *result = 0;
  const OwnStream beside(device.index);
  Workspace memory(sizeof(float), beside);
  const float one = 1;
  memory.upload(&one, sizeof(one));
  copy(result, memory.as<float>(), sizeof(float), beside);
  CHECK(*result == 0);
  synchronize(device);
  CHECK(*result == 1);
  free_pinned(result);
}

TEST_CASE("cuda.streams: work that ended undone is told to who waits for its device, once") {
  const Device device = Device::cuda(3);
  note_lost_work(device.index, std::make_exception_ptr(StateError("a rank is gone")));
  synchronize(Device::cuda(2));
  CHECK_THROWS_WITH_AS(synchronize(device), "a rank is gone", StateError);
  synchronize(device);
}

TEST_CASE("cuda.streams: static objects free memory when thread-local ones are gone") {
  static const Tensor kept = Tensor::ones({3}).to(Device::cuda(0));  // sanitizers watch the exit
  const OwnStream other(0);
  { const StreamScope scope(0, other); }
  CHECK(kept.device() == Device::cuda(0));
}

TEST_CASE("cuda.streams: freed memory serves again on its stream, and reads as NaN until then") {
  const OwnStream stream(0), other(0);
  void* const first = allocate(1000, 0, stream);
  CHECK(device_of(first) == 0);
  const float one = 1;
  copy(first, &one, sizeof(one), stream);
  cuda::free(first, stream);
  void* const elsewhere = allocate(1000, 0, other);
  CHECK(elsewhere != first);
  void* const second = allocate(1000, 0, stream);
  CHECK(second == first);
  float value = 0;
  copy(&value, second, sizeof(value), stream);
  CHECK(value != value);
  cuda::free(second, stream);
  cuda::free(elsewhere, other);
}

TEST_CASE("cuda.streams: memory that another stream uses holds nobody up and serves again later") {
  using Clock = std::chrono::steady_clock;
  const OwnStream owner(0), reader(0);
  empty_cache(0);
  void* const x = allocate(24, 0, owner);
  std::atomic<bool> is_over = false;
  const auto start = Clock::now();
  simt::enqueue_steps(static_cast<simt::Stream*>(Stream(reader).handle),
                      [&] { return is_over || Clock::now() - start > std::chrono::seconds(3); });
  cuda::free(x, reader);
  void* const other = allocate(24, 0, owner);
  CHECK(other != x);
  synchronize(owner);
  CHECK(Clock::now() - start < std::chrono::seconds(3));
  is_over = true;
  synchronize(reader);
  void* const again = allocate(24, 0, owner);
  CHECK(again == x);
  float value = 0;
  copy(&value, again, sizeof(value), owner);
  CHECK(value != value);
  cuda::free(again, reader);
  cuda::free(other, owner);
  empty_cache(0);
}

TEST_CASE("cuda.streams: on a full device the next owner waits for the stream that used memory") {
  const DefaultOrder later;
  for (const simt::StreamOptions& order : stream_orders()) {
    simt::set_stream_options(order);
    empty_cache(0);
    const OwnStream owner(0), reader(0);
    void* const x = allocate(2 * sizeof(float), 0, owner);
    const float values[] = {1, 2}, others[] = {5, 6};
    copy(x, values, sizeof(values), owner);
    const Event written = make_event();
    record(written, owner);
    wait(reader, written);
    destroy(written);
    Workspace sum(sizeof(float), reader);
    launch_cuda(
        RowSum<float>{row_major<const float>(static_cast<float*>(x), 1, 2), sum.as<float>()},
        reader);
    cuda::free(x, reader);
    simt::set_device_size(simt::device_memory_in_use());
    void* const again = allocate(2 * sizeof(float), 0, owner);
    simt::set_device_size(std::size_t{1} << 40);
    CHECK(again == x);
    copy(again, others, sizeof(others), owner);
    synchronize(owner);
    CHECK(fetch(sum) == 3);
    cuda::free(again, owner);
  }
}

TEST_CASE("cuda.streams: a thread that waits for memory of one device holds nobody else up") {
  constexpr std::size_t kSize = 1 << 20;
  using Clock = std::chrono::steady_clock;
  const OwnStream busy(1), other(2);
  empty_cache(1);
  cuda::free(allocate(8, 2, other), other);
  cuda::free(allocate(kSize / 2, 1, busy), busy);
  std::atomic<bool> is_waiting = false, has_peer = false, was_in_time = false;
  const auto start = Clock::now();
  // What the full device works on ends when another thread, a peer of its own device, has memory.
  simt::enqueue_steps(static_cast<simt::Stream*>(Stream(busy).handle), [&] {
    is_waiting = true;
    if (has_peer) was_in_time = true;
    return has_peer || Clock::now() - start > std::chrono::seconds(3);
  });
  simt::set_device_size(simt::device_memory_in_use() + kSize / 4);
  std::thread full([&] { cuda::free(allocate(kSize / 2 + 1, 1, busy), busy); });
  while (!is_waiting) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  cuda::free(allocate(8, 2, other), other);
  has_peer = true;
  full.join();
  CHECK(was_in_time);
  simt::set_device_size(std::size_t{1} << 40);
  empty_cache(1);
}

TEST_CASE("cuda.streams: the address sanitizer closes device memory to the host") {
  const OwnStream stream(0);
  const Workspace x(sizeof(float), stream);
  CHECK(simt::is_closed(x.as<float>()) == kAddressSanitizer);
  bool is_closed_to_work = true;
  simt::enqueue(static_cast<simt::Stream*>(Stream(stream).handle),
                [&] { is_closed_to_work = simt::is_closed(x.as<float>()); });
  synchronize(stream);
  CHECK(!is_closed_to_work);
  CHECK(simt::is_closed(x.as<float>()) == kAddressSanitizer);
}

TEST_CASE("cuda.streams: a full device gives its cache back before it refuses") {
  constexpr std::size_t kSize = 1 << 20;
  const OwnStream stream(1);
  empty_cache(0);
  empty_cache(1);
  const MemoryStats before = memory_stats(1);
  simt::set_device_size(simt::device_memory_in_use() + kSize);
  void* const half = allocate(kSize / 2, 1, stream);
  cuda::free(half, stream);
  CHECK(memory_stats(1).cached_bytes == before.cached_bytes + static_cast<std::int64_t>(kSize / 2));
  void* const whole = allocate(kSize, 1, stream);
  CHECK(memory_stats(1).cached_bytes == 0);
  CHECK(memory_stats(1).allocated_bytes ==
        before.allocated_bytes + static_cast<std::int64_t>(kSize));
  CHECK_THROWS_WITH_AS(allocate(8, 1, stream),
                       doctest::Contains("[allocate] cuda:1 must have 8 bytes left"),
                       OutOfMemoryError);
  cuda::free(whole, stream);
  reset_peak_memory(1);
  CHECK(memory_stats(1).peak_bytes == before.allocated_bytes);
  empty_cache(1);
  simt::set_device_size(std::size_t{1} << 40);
}
