// The SIMT simulator: runs a CUDA kernel that g++ compiled, thread by thread, and checks it.
//
// A block's threads are fibers of one OS thread. Each runs until it waits at a barrier, meets its
// warp or returns; a schedule decides who runs next. Everything that hardware would leave undefined
// is a KernelFault: a barrier that not all threads reach, a shuffle with absent lanes, and so on.
#pragma once

#include "accrue/core/error.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <source_location>
#include <type_traits>

namespace accrue::simt {

/// A kernel did what CUDA leaves undefined or refuses. The text names kernel, block, thread and
/// places in the source.
struct KernelFault : Error {
  using Error::Error;
};

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
  bool operator==(const Dim3&) const = default;
};

/// What a thread knows of itself.
struct Coordinates {
  Dim3 thread, block, block_size, grid;
};

/// The order in which blocks run, and in a block the threads that can.
enum class Schedule : std::uint8_t { ascending, descending, interleaved, random };

/// How the launches of this OS thread run. interleaved takes lane 0 of each warp, then lane 1, and
/// every other block first.
struct RunOptions {
  Schedule schedule = Schedule::ascending;
  std::uint64_t seed = 1;
  std::int64_t block_begin = 0;  ///< only blocks [begin, end) run, counted with x fastest
  std::int64_t block_end = std::numeric_limits<std::int64_t>::max();
};
RunOptions& run_options();

/// Other options for the launches of this OS thread while it lives.
class OptionsScope {
 public:
  explicit OptionsScope(const RunOptions& options) : before_(run_options()) {
    run_options() = options;
  }
  ~OptionsScope() { run_options() = before_; }
  OptionsScope(const OptionsScope&) = delete;
  OptionsScope& operator=(const OptionsScope&) = delete;

 private:
  RunOptions before_;
};

using Site = std::source_location;

/// The sizes of a launch.
struct LaunchShape {
  const char* name = "";  ///< of the kernel, for errors
  Dim3 grid, block;
  std::size_t dynamic_shared = 0;  ///< bytes
};

/// Calls body(argument) as every thread of the grid.
///
/// Errors:  KernelFault: a launch that CUDA refuses, or the first fault of the kernel; the rest of
///          the grid has not run then.
/// Threads: each OS thread has a simulator of its own.
void run_grid(const LaunchShape& shape, void (*body)(void*), void* argument);

/// The thread that runs now.
extern constinit thread_local const Coordinates* current_thread;

/// Waits for all threads of the block, at this place in the source.
void sync_block(Site site);

enum class WarpOp : std::uint8_t {
  sync,
  shuffle,
  shuffle_up,
  shuffle_down,
  shuffle_xor,
  ballot,
  add,
  smallest,
  largest
};

/// Meets the other lanes of `mask` in `op`; returns this lane's result. `argument` is the lane, the
/// distance or the lane mask of a shuffle.
std::uint64_t meet_warp(
    WarpOp op, unsigned mask, std::uint64_t value, int argument, int width, Site site);

/// The block's shared array that belongs to `key`: 16-byte aligned, all bits set in each new block.
void* shared_array(const void* key, const char* name, std::size_t bytes, Site site);
/// Shared memory that a block may have, in bytes.
inline constexpr std::size_t kMaxShared = 227 * 1024;
/// The dynamic shared memory of the launch.
void* dynamic_shared_array(Site site);

/// Ends the kernel with a KernelFault that names the current thread.
[[noreturn]] void fault(const char* what, Site site);

/// A shuffle of any plain value of at most 8 bytes.
template <class T>
T shuffle(WarpOp op, unsigned mask, T value, int argument, int width, Site site) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = meet_warp(op, mask, bits, argument, width, site);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

/// A 16-byte access must be aligned, as the hardware's.
inline void check_aligned(const void* address, Site site) {
  if (std::bit_cast<std::uintptr_t>(address) % 16 != 0) {
    fault("a vector access must be aligned to 16 bytes", site);
  }
}

}  // namespace accrue::simt
