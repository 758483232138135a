// Simulated streams and events: queues that run late, in any order that CUDA allows.
//
// Work that is queued runs when somebody waits, on the thread that waits. Streams overtake each
// other as stream_options() says; events hold them back. So work that needs an order it did not ask
// for reads memory before it is written.
#pragma once

#include <cstdint>
#include <functional>

namespace accrue::simt {

class Stream;
class Event;

/// Who runs when somebody waits for a stream: only what it needs; everything else first; any.
enum class StreamOrder : std::uint8_t { lazy, eager, random };

struct StreamOptions {
  StreamOrder order = StreamOrder::random;
  std::uint64_t seed = 1;
};
/// Replaces the options of this process.
void set_stream_options(const StreamOptions& options);

/// Streams last as long as the process.
Stream* make_stream();
Event* make_event();
/// Waits that were queued keep their meaning.
void destroy(Event* event);

/// Appends work. A null stream runs it at once.
void enqueue(Stream* stream, std::function<void()> work);
/// Appends work that other threads or processes help to end: advance() is called until it returns
/// true, and may be called again then. It goes on by itself, whether somebody waits or not; so does
/// all that stands before it. On a null stream it is done when this returns.
void enqueue_steps(Stream* stream, std::function<bool()> advance);
void record(Event* event, Stream* stream);
/// Holds `stream` back until the last record() of the event so far has been reached.
void wait(Stream* stream, Event* event);

// These run queued work. What work throws is thrown here; the rest of all queues is lost then.
void synchronize(Stream* stream);
void synchronize(Event* event);
void synchronize_all();
/// How often somebody waited so far, in any thread.
std::size_t num_waits();

/// Whether the last record() has been reached; runs nothing.
bool is_done(const Event* event);

// Device memory: fenced, NaN until it is written; under the address sanitizer only work may touch
// it. Errors: OutOfMemoryError beyond the size of the simulated device.
void* allocate_device(std::size_t bytes);
void free_device(void* data);
/// Whether the address sanitizer would report a read by the host now.
bool is_closed(const void* data);
/// Bytes that all of the device's memory may have.
void set_device_size(std::size_t bytes);
std::size_t device_memory_in_use();

}  // namespace accrue::simt
