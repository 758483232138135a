// Fiber: a stack that runs a function and can be left and entered again, known to the sanitizers.
#pragma once

#include <boost/context/fiber.hpp>

#include <cstddef>

namespace accrue::simt {

/// Runs `entry(argument)` on a stack of its own, a stretch per resume(). Stays on one OS thread.
class Fiber {
 public:
  using Entry = void (*)(void*);

  Fiber(Entry entry, void* argument);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs until the function calls suspend() or returns; after its return never call this again.
  void resume();
  /// Called by the function: goes back to resume().
  void suspend();
  /// What a race report calls this fiber.
  void set_name(const char* name);

 private:
  boost::context::fiber run(boost::context::fiber&& caller);

  Entry entry_;
  void* argument_;
  boost::context::fiber context_, caller_;
  void* race_context_ = nullptr;
  void* caller_race_context_ = nullptr;
  const void* stack_ = nullptr;
  std::size_t stack_size_ = 0;
  const void* caller_stack_ = nullptr;
  std::size_t caller_stack_size_ = 0;
  void* fake_stack_ = nullptr;
};

/// Happens-before for the race detector: everything before a release() of an address precedes
/// everything after a later acquire() of it.
void release(void* address);
void acquire(void* address);

}  // namespace accrue::simt
