// Machine's meetings of a warp, and what it reports when threads wait in vain.
#include "accrue/kernels/simt/limits.h"
#include "accrue/kernels/simt/machine.h"

#include <bit>

namespace accrue::simt {
namespace {

const char* name_of(WarpOp op) {
  constexpr const char* kNames[] = {"sync_warp",
                                    "shuffle",
                                    "shuffle_up",
                                    "shuffle_down",
                                    "shuffle_xor",
                                    "ballot",
                                    "integer sum",
                                    "integer minimum",
                                    "integer maximum"};
  return kNames[static_cast<int>(op)];
}

bool meets(const Thread& a, const Thread& b) {
  return a.state == Thread::State::at_warp && a.op == b.op && a.mask == b.mask &&
         is_same(a.site, b.site);
}

/// The lane a shuffle reads, in the segments of `width` lanes that CUDA defines.
int source_of(const Thread& it) {
  const int lane = it.index % kWarp, begin = lane & ~(it.width - 1);
  switch (it.op) {
    case WarpOp::shuffle:
      return begin + (it.argument & (it.width - 1));
    case WarpOp::shuffle_up:
      return lane - it.argument < begin ? lane : lane - it.argument;
    case WarpOp::shuffle_down:
      return lane + it.argument >= begin + it.width ? lane : lane + it.argument;
    case WarpOp::shuffle_xor:
      return (lane ^ it.argument) >= begin + it.width ? lane : lane ^ it.argument;
    default:
      return lane;
  }
}

std::string describe(const Thread& it) {
  switch (it.state) {
    case Thread::State::returned:
      return text("thread ", it.at.thread, " has returned");
    case Thread::State::at_barrier:
      return text("thread ", it.at.thread, " waits at the barrier ", place(it.site));
    case Thread::State::at_warp:
      return text("thread ",
                  it.at.thread,
                  " is at ",
                  name_of(it.op),
                  " with mask ",
                  std::hex,
                  it.mask,
                  std::dec,
                  " at ",
                  place(it.site));
    case Thread::State::ready:
      break;
  }
  return text("thread ", it.at.thread, " can run");
}

}  // namespace

std::uint64_t Machine::meet_warp(
    WarpOp op, unsigned mask, std::uint64_t value, int argument, int width, Site site) {
  Thread& self = *running_;
  const int lane = self.index % kWarp, first = self.index - lane;
  if ((mask >> lane & 1U) == 0) {
    fault(text("lane ", lane, " is not in the mask ", std::hex, mask, " of its ", name_of(op)),
          site);
  }
  if (width <= 0 || width > kWarp || !std::has_single_bit(static_cast<unsigned>(width))) {
    fault(text("the width of a shuffle is a power of two up to 32, got ", width), site);
  }
  self.site = site;
  self.op = op;
  self.mask = mask;
  self.value = value;
  self.argument = argument;
  self.width = width;
  self.state = Thread::State::at_warp;
  const auto group = static_cast<std::size_t>(first + std::countr_zero(mask));
  char* const epoch = &stage_->warp_epochs[group][stage_->warp_parity[group] % 2];
  if (op == WarpOp::sync) release(epoch);
  complete_warp(self);
  suspend();
  if (op == WarpOp::sync) acquire(epoch);
  return self.result;
}

/// Lets the lanes of a mask go on if `last` was the one they waited for.
void Machine::complete_warp(const Thread& last) {
  const int first = last.index / kWarp * kWarp;
  // From the last lane on, which is mostly the last to come.
  for (unsigned lanes = last.mask; lanes != 0; lanes &= ~std::bit_floor(lanes)) {
    const int i = first + std::bit_width(lanes) - 1;
    if (i >= num_threads_ || !meets(thread(i), last)) return;
  }
  for (unsigned lanes = last.mask; lanes != 0; lanes &= lanes - 1) {
    Thread& it = thread(first + std::countr_zero(lanes));
    it.result = result_of(it);
  }
  for (unsigned lanes = last.mask; lanes != 0; lanes &= lanes - 1) {
    thread(first + std::countr_zero(lanes)).state = Thread::State::ready;
    ++num_ready_;
  }
  ++stage_->warp_parity[static_cast<std::size_t>(first + std::countr_zero(last.mask))];
}

std::uint64_t Machine::result_of(const Thread& it) {
  const int first = it.index / kWarp * kWarp;
  const int source = source_of(it);
  if ((it.mask >> source & 1U) == 0) {
    fault(text("thread ",
               it.at.thread,
               " reads lane ",
               source,
               ", which is not in the mask ",
               std::hex,
               it.mask,
               " of the ",
               name_of(it.op)),
          it.site);
  }
  std::uint64_t result = thread(first + source).value;
  if (it.op < WarpOp::ballot) return result;
  result = it.op == WarpOp::ballot ? 0 : thread(first + std::countr_zero(it.mask)).value;
  for (unsigned lanes = it.mask; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::uint64_t value = thread(first + lane).value;
    const auto a = static_cast<std::int64_t>(result), b = static_cast<std::int64_t>(value);
    if (it.op == WarpOp::ballot) result |= (value & 1) << lane;
    if (it.op == WarpOp::add && lane != std::countr_zero(it.mask)) result += value;
    if (it.op == WarpOp::smallest) result = b < a ? value : result;
    if (it.op == WarpOp::largest) result = b > a ? value : result;
  }
  return result;
}

void Machine::report_warp(const Thread& waiting) {
  const int first = waiting.index / kWarp * kWarp;
  for (unsigned lanes = waiting.mask; lanes != 0; lanes &= lanes - 1) {
    const int i = first + std::countr_zero(lanes);
    if (i < num_threads_ && meets(thread(i), waiting)) continue;
    const std::string why = i >= num_threads_
                                ? text("the block has only ", num_threads_, " threads")
                                : describe(thread(i));
    report(text("the ",
                name_of(waiting.op),
                " with mask ",
                std::hex,
                waiting.mask,
                std::dec,
                " waits for lane ",
                i - first,
                " in vain: ",
                why),
           waiting);
  }
  report(text("the ", name_of(waiting.op), " never completes"), waiting);
}

void Machine::report_barrier() {
  const Thread* waiting = nullptr;
  for (int i = 0; i < num_threads_ && waiting == nullptr; ++i) {
    if (thread(i).state == Thread::State::at_barrier) waiting = &thread(i);
  }
  for (int i = 0; i < num_threads_; ++i) {
    const Thread& other = thread(i);
    const bool waits = other.state == Thread::State::at_barrier;
    if (waits && is_same(other.site, waiting->site)) continue;
    report(text("a barrier waits for all threads of the block, but ", describe(other)), *waiting);
  }
  report("a barrier never opens", *waiting);
}

void Machine::report(const std::string& what, const Thread& at) {
  running_ = const_cast<Thread*>(&at);
  fault_ = text("[", shape_.name, "] ", what, "; found in ", whereabouts(), " at ", place(at.site));
  unwind();
}

void Machine::fault(const std::string& what, Site site) {
  fault_ = text("[", shape_.name, "] ", what, "; found in ", whereabouts(), " at ", place(site));
  throw Unwind{};
}

std::string Machine::whereabouts() const {
  if (running_ == nullptr) return "no kernel";
  return text(
      "kernel ", shape_.name, ", block ", running_->at.block, ", thread ", running_->at.thread);
}

std::uint64_t meet_warp(
    WarpOp op, unsigned mask, std::uint64_t value, int argument, int width, Site site) {
  return machine().meet_warp(op, mask, value, argument, width, site);
}

void fault(const char* what, Site site) { machine().fault(what, site); }

}  // namespace accrue::simt
