#include "accrue/kernels/simt/fiber.h"

#include "accrue/core/config.h"

#include <boost/context/protected_fixedsize_stack.hpp>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/tsan_interface.h>

#include <memory>
#include <utility>

namespace accrue::simt {
namespace {

constexpr std::size_t kStackSize = 128 * 1024;  // a page is committed when it is first touched

/// Allocates stacks with a guard page and says where the last one lies.
struct StackAllocator {
  boost::context::protected_fixedsize_stack pages{kStackSize};
  boost::context::stack_context* last;

  boost::context::stack_context allocate() { return *last = pages.allocate(); }
  void deallocate(boost::context::stack_context& stack) noexcept {
    if constexpr (kAddressSanitizer)  // frames that never returned marked memory that others get
      __asan_unpoison_memory_region(static_cast<const char*>(stack.sp) - stack.size, stack.size);
    pages.deallocate(stack);
  }
};

void leave_stack(void** fake_stack, const void* next, std::size_t size) {
  if constexpr (kAddressSanitizer) __sanitizer_start_switch_fiber(fake_stack, next, size);
}

void enter_stack(void* fake_stack, const void** previous, std::size_t* size) {
  if constexpr (kAddressSanitizer) __sanitizer_finish_switch_fiber(fake_stack, previous, size);
}

/// Without the flag the switch itself would order the fibers and hide every race.
void enter_race_context(void* context) {
  if constexpr (kThreadSanitizer) __tsan_switch_to_fiber(context, __tsan_switch_to_fiber_no_sync);
}

}  // namespace

Fiber::Fiber(Entry entry, void* argument) : entry_(entry), argument_(argument) {
  boost::context::stack_context stack;
  context_ = boost::context::fiber(
      std::allocator_arg, StackAllocator{.last = &stack}, [this](boost::context::fiber&& caller) {
        return run(std::move(caller));
      });
  stack_ = static_cast<const char*>(stack.sp) - stack.size;
  stack_size_ = stack.size;
  if constexpr (kThreadSanitizer) race_context_ = __tsan_create_fiber(0);
}

Fiber::~Fiber() {
  if constexpr (kThreadSanitizer) __tsan_destroy_fiber(race_context_);
}

void Fiber::resume() {
  void* fake_stack = nullptr;
  if constexpr (kThreadSanitizer) caller_race_context_ = __tsan_get_current_fiber();
  leave_stack(&fake_stack, stack_, stack_size_);
  enter_race_context(race_context_);
  context_ = std::move(context_).resume();
  enter_stack(fake_stack, nullptr, nullptr);
}

void Fiber::suspend() {
  leave_stack(&fake_stack_, caller_stack_, caller_stack_size_);
  enter_race_context(caller_race_context_);
  caller_ = std::move(caller_).resume();
  enter_stack(fake_stack_, &caller_stack_, &caller_stack_size_);
}

boost::context::fiber Fiber::run(boost::context::fiber&& caller) {
  caller_ = std::move(caller);
  enter_stack(nullptr, &caller_stack_, &caller_stack_size_);
  entry_(argument_);
  leave_stack(nullptr, caller_stack_, caller_stack_size_);
  enter_race_context(caller_race_context_);
  return std::move(caller_);
}

void Fiber::set_name([[maybe_unused]] const char* name) {
  if constexpr (kThreadSanitizer) __tsan_set_fiber_name(race_context_, name);
}

void release([[maybe_unused]] void* address) {
  if constexpr (kThreadSanitizer) __tsan_release(address);
}

void acquire([[maybe_unused]] void* address) {
  if constexpr (kThreadSanitizer) __tsan_acquire(address);
}

}  // namespace accrue::simt
