// run_ranks: a job whose ranks are threads of this process.
#pragma once

#include "accrue/dist/process_group.h"

#include <memory>
#include <type_traits>

namespace accrue::dist {

/// A borrowed callable of (ProcessGroup&).
class RankBody {
 public:
  template <class Body>
  requires(!std::is_same_v<std::remove_cvref_t<Body>, RankBody>)
      RankBody(Body& body)  // NOLINT(google-explicit-constructor): a parameter type
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(body)))),
        call_([](void* object, ProcessGroup& group) { (*static_cast<Body*>(object))(group); }) {}
  void operator()(ProcessGroup& group) const { call_(object_, group); }

 private:
  void* object_;
  void (*call_)(void*, ProcessGroup&);
};

void run_rank_threads(int size, RankBody body, const GroupOptions& options);

/// Calls body(group) on `size` new threads, one per rank, and returns when all have ended. A new
/// thread has its own default generator, grad mode and window; world() is its group.
///
/// When a rank ends, by an exception or not, the others' calls that need it throw DistributedError.
/// The exception that was thrown first is rethrown here.
///
/// Errors:  ValueError for size < 1; what a body throws.
template <class Body>
void run_ranks(int size, Body&& body, const GroupOptions& options = {}) {
  run_rank_threads(size, RankBody(body), options);
}

}  // namespace accrue::dist
