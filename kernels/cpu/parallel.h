// parallel_for: splits an index range over the library's own threads, always in the same way.
#pragma once

#include "accrue/kernels/cpu/float_mode.h"

#include <cstdint>
#include <memory>
#include <type_traits>

namespace accrue::kernels {

/// Sets how many threads share each parallel_for, the caller included. Bits never depend on it.
///
/// Threads: waits for a parallel_for of another thread to end.
/// Errors:  ValueError outside [1, 1024]; StateError inside a parallel_for.
void set_num_threads(int count);

/// The number set, else the environment's ACCRUE_NUM_THREADS, else the cores this process may use.
///
/// Errors:  ValueError when ACCRUE_NUM_THREADS is not a number in [1, 1024].
int num_threads();

/// A borrowed callable of (begin, end); it must outlive the call it is passed to.
class RangeBody {
 public:
  template <class Body>
  requires(!std::is_same_v<std::remove_cvref_t<Body>, RangeBody>)
      RangeBody(Body& body)  // NOLINT(google-explicit-constructor): a parameter type
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(body)))),
        call_([](void* object, std::int64_t begin, std::int64_t end) {
          (*static_cast<Body*>(object))(begin, end);
        }) {}
  void operator()(std::int64_t begin, std::int64_t end) const { call_(object_, begin, end); }

 private:
  void* object_;
  void (*call_)(void*, std::int64_t, std::int64_t);
};

/// The grain of rows of `width` elements: 16 Ki elements are worth a thread.
inline std::int64_t row_grain(std::int64_t width) {
  return (1 << 14) / (width > 1 ? width : 1) + 1;
}

/// parallel_for for a range that is worth splitting.
void run_parallel(std::int64_t count, std::int64_t grain, RangeBody body);

/// Calls body(begin, end) on disjoint ranges that cover [0, count), none shorter than `grain`
/// unless it is the only one. The split depends on count, grain and num_threads() alone.
///
/// Runs inline when one range is enough, inside another parallel_for, and while another thread's
/// parallel_for holds the threads, so it never waits for a lock. The first exception of a body is
/// rethrown here after all ranges ended. Bodies run in the mode of DefaultFloats on every thread. A
/// forked child must not call it.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) {
  if (count <= 0) return;
  if (count <= grain || num_threads() == 1) {
    const DefaultFloats floats;
    body(std::int64_t{0}, count);
  } else {
    run_parallel(count, grain, RangeBody(body));
  }
}

}  // namespace accrue::kernels
