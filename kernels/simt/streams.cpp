#include "accrue/kernels/simt/streams.h"

#include "accrue/core/config.h"
#include "accrue/core/error.h"
#include "accrue/kernels/simt/memory.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace accrue::simt {

/// How often an event was recorded, and how many of those records were reached.
class Event {
 public:
  struct Count {
    std::uint64_t recorded = 0, reached = 0;
  };
  std::shared_ptr<Count> count = std::make_shared<Count>();
};

/// A queue of work. A wait is work that cannot run before its event's record was reached.
class Stream {
 public:
  struct Item {
    std::function<void()> work;
    std::shared_ptr<Event::Count> event = nullptr;
    std::uint64_t number = 0;
    std::function<bool()> advance = nullptr;

    bool can_run() const {
      return advance ? advance() : event == nullptr || event->reached >= number;
    }
  };
  std::deque<Item> items;
};

namespace {

class Queues {
 public:
  std::recursive_mutex mutex;
  StreamOptions options;
  std::mt19937_64 dice{1};
  std::vector<std::unique_ptr<Stream>> streams;
  std::map<std::byte*, std::unique_ptr<GuardedMemory>> memory;
  std::size_t device_size = std::size_t{1} << 40, used = 0;
  int num_steps = 0;  ///< items with advance
  std::condition_variable_any has_steps;
  std::exception_ptr failure;  ///< of work that nobody waited for
  std::size_t num_waits = 0;

  using Lock = std::unique_lock<std::recursive_mutex>;

  /// Runs until `is_done`; `wanted` is the stream that somebody waits for, if it is one. The lock
  /// is given up while only steps of others can help.
  template <class Done>
  void run(Lock& lock, const Stream* wanted, const Done& is_done) {
    ++num_waits;
    if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
    if (is_done()) return;
    std::optional<Access> access(std::in_place, *this);
    while (!is_done()) {
      if (run(choose(wanted))) continue;
      if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
      ACCRUE_CHECK(num_steps > 0,
                   DeviceError,
                   "synchronize",
                   "queued work was lost when other work failed, so nothing can be waited for; "
                   "restart the program");
      access.reset();  // meanwhile others may allocate
      nap(lock);
      access.emplace(*this);
    }
  }

  /// Lets steps go on, and what stands before them, while nobody waits. Never returns.
  void help() {
    Lock lock(mutex);
    while (true) {
      has_steps.wait(lock, [&] { return num_steps > 0; });
      try {
        const Access access(*this);
        if (run(choose_for_steps())) continue;
      } catch (...) {
        failure = std::current_exception();
      }
      nap(lock);
    }
  }

  void perform(const std::function<void()>& work) {
    const Access access(*this);
    try {
      if (work) work();
    } catch (...) {
      for (const auto& stream : streams) stream->items.clear();
      num_steps = 0;
      throw;
    }
  }

  void add_steps(Stream& stream, std::function<bool()> advance) {
    if (!std::exchange(has_helper_, true)) std::thread([this] { help(); }).detach();
    stream.items.push_back({nullptr, nullptr, 0, std::move(advance)});
    ++num_steps;
    has_steps.notify_all();
  }

  /// On no stream.
  void take_steps(Lock& lock, const std::function<bool()>& advance) {
    const auto is_done = [&] {
      const Access access(*this);
      return advance();
    };
    while (!is_done()) nap(lock);
  }

 private:
  static void nap(Lock& lock) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    lock.lock();
  }

  /// The next item of a stream, if there is one.
  bool run(Stream* stream) {
    if (stream == nullptr) return false;
    const Stream::Item item = std::move(stream->items.front());
    stream->items.pop_front();
    if (item.advance) --num_steps;
    perform(item.work);
    return true;
  }

  /// Device memory may be touched while one of these lives.
  class Access {
   public:
    explicit Access(Queues& queues) : queues_(queues) {
      if (queues_.accesses_++ == 0) queues_.expose(true);
    }
    ~Access() {
      if (--queues_.accesses_ == 0) queues_.expose(false);
    }
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

   private:
    Queues& queues_;
  };

  void expose(bool is_open) {
    if constexpr (kAddressSanitizer) {
      for (const auto& [data, block] : memory) {
        if (is_open) __asan_unpoison_memory_region(data, block->size());
        if (!is_open) __asan_poison_memory_region(data, block->size());
      }
    }
  }

  std::vector<Stream*> find_ready() const {
    std::vector<Stream*> ready;
    for (const auto& stream : streams) {
      if (!stream->items.empty() && stream->items.front().can_run()) ready.push_back(stream.get());
    }
    return ready;
  }

  /// No more than steps need: what follows them stays late.
  Stream* choose_for_steps() {
    const std::vector<Stream*> ready = find_ready();
    bool needs_others = false;
    for (const auto& stream : streams) {
      const auto is_step = [](const Stream::Item& it) { return bool(it.advance); };
      if (std::ranges::none_of(stream->items, is_step)) continue;
      if (std::ranges::find(ready, stream.get()) != ready.end()) return stream.get();
      needs_others |= stream->items.front().event != nullptr;
    }
    return needs_others && !ready.empty() ? ready[dice() % ready.size()] : nullptr;
  }

  Stream* choose(const Stream* wanted) {
    std::vector<Stream*> ready = find_ready();
    if (ready.empty()) return nullptr;
    const auto is_wanted = [&](const Stream* stream) { return stream == wanted; };
    switch (options.order) {
      case StreamOrder::lazy:
        std::ranges::stable_partition(ready, is_wanted);
        return ready.front();
      case StreamOrder::eager:
        std::ranges::stable_partition(ready, is_wanted);
        return ready.back();
      case StreamOrder::random:
        break;
    }
    return ready[dice() % ready.size()];
  }

  int accesses_ = 0;
  bool has_helper_ = false;
};

/// Never destroyed: storages in static objects are freed after any other static.
Queues& queues() {
  static Queues* const the_queues = new Queues;
  return *the_queues;
}

}  // namespace

void set_stream_options(const StreamOptions& options) {
  Queues& all = queues();
  const std::scoped_lock lock(all.mutex);
  all.options = options;
  all.dice.seed(options.seed);
}

Stream* make_stream() {
  Queues& all = queues();
  const std::scoped_lock lock(all.mutex);
  all.streams.push_back(std::make_unique<Stream>());
  return all.streams.back().get();
}

Event* make_event() { return new Event; }
void destroy(Event* event) { delete event; }

void enqueue(Stream* stream, std::function<void()> work) {
  Queues& all = queues();
  const std::scoped_lock lock(all.mutex);
  if (stream == nullptr) return all.perform(work);
  stream->items.push_back({std::move(work)});
}

void enqueue_steps(Stream* stream, std::function<bool()> advance) {
  Queues& all = queues();
  Queues::Lock lock(all.mutex);
  if (stream == nullptr) return all.take_steps(lock, advance);
  all.add_steps(*stream, std::move(advance));
}

void record(Event* event, Stream* stream) {
  const std::scoped_lock lock(queues().mutex);
  const auto& count = event->count;
  enqueue(stream, [count, number = ++count->recorded] {
    count->reached = std::max(count->reached, number);
  });
}

void wait(Stream* stream, Event* event) {
  if (stream == nullptr) return synchronize(event);
  const std::scoped_lock lock(queues().mutex);
  stream->items.push_back({nullptr, event->count, event->count->recorded});
}

void synchronize(Stream* stream) {
  Queues::Lock lock(queues().mutex);
  if (stream == nullptr) return;
  queues().run(lock, stream, [&] { return stream->items.empty(); });
}

void synchronize(Event* event) {
  Queues::Lock lock(queues().mutex);
  const auto& count = event->count;
  const std::uint64_t number = count->recorded;
  queues().run(lock, nullptr, [&] { return count->reached >= number; });
}

void synchronize_all() {
  Queues& all = queues();
  Queues::Lock lock(all.mutex);
  all.run(lock, nullptr, [&] {
    return std::ranges::all_of(all.streams, [](const auto& it) { return it->items.empty(); });
  });
}

std::size_t num_waits() {
  const std::scoped_lock lock(queues().mutex);
  return queues().num_waits;
}

bool is_done(const Event* event) {
  const std::scoped_lock lock(queues().mutex);
  return event->count->reached >= event->count->recorded;
}

void* allocate_device(std::size_t bytes) {
  constexpr std::size_t kFilled = std::size_t{64} << 20;  // larger blocks cost what is touched
  Queues& all = queues();
  const std::scoped_lock lock(all.mutex);
  ACCRUE_CHECK(bytes <= all.device_size - all.used,
               OutOfMemoryError,
               "allocate",
               "the simulated device must have ",
               bytes,
               " bytes left, got ",
               all.device_size - all.used);
  auto block = std::make_unique<GuardedMemory>(bytes);
  std::byte* const data = block->data();
  if (bytes <= kFilled) std::memset(data, 0xff, bytes);
  if constexpr (kAddressSanitizer) __asan_poison_memory_region(data, bytes);
  all.used += bytes;
  all.memory.emplace(data, std::move(block));
  return data;
}

void free_device(void* data) {
  Queues& all = queues();
  const std::scoped_lock lock(all.mutex);
  const auto block = all.memory.find(static_cast<std::byte*>(data));
  ACCRUE_CHECK(block != all.memory.end(), StateError, "free", "the device must own the memory");
  if constexpr (kAddressSanitizer) __asan_unpoison_memory_region(data, block->second->size());
  all.used -= block->second->size();
  all.memory.erase(block);
}

bool is_closed(const void* data) {
  if constexpr (kAddressSanitizer) return __asan_address_is_poisoned(data) != 0;
  return false;
}

std::size_t device_memory_in_use() {
  const std::scoped_lock lock(queues().mutex);
  return queues().used;
}

void set_device_size(std::size_t bytes) {
  const std::scoped_lock lock(queues().mutex);
  queues().device_size = bytes;
}

}  // namespace accrue::simt
