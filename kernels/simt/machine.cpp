#include "accrue/kernels/simt/machine.h"

#include "accrue/core/config.h"
#include "accrue/kernels/cpu/float_mode.h"
#include "accrue/kernels/simt/limits.h"
#include "accrue/kernels/simt/order.h"

#include <sanitizer/common_interface_defs.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace accrue::simt {

constinit thread_local const Coordinates* current_thread = nullptr;

namespace {

/// Tells which thread ran when a sanitizer ended the process.
void print_whereabouts() {
  const std::string line = "The simulator was in " + machine().whereabouts() + ".\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

Machine& machine() {
  thread_local Machine the_machine;
  return the_machine;
}

Machine::~Machine() {
  is_stopping_ = true;
  for (Stage& stage : stages_) {
    for (auto& thread : stage.threads) thread->fiber->resume();
  }
}

void Machine::run(const LaunchShape& shape, void (*body)(void*), void* argument) {
  check_launch(shape);
  const kernels::DefaultFloats floats;  // a device does not know the mode of the host's thread
  if constexpr (kAddressSanitizer || kThreadSanitizer) {
    __sanitizer_set_death_callback(print_whereabouts);
  }
  shape_ = shape;
  body_ = body;
  argument_ = argument;
  num_threads_ = static_cast<int>(shape.block.x * shape.block.y * shape.block.z);
  const RunOptions& options = run_options();
  dice_.seed(options.seed);
  release(&launch_order_);
  const BlockOrder blocks(shape.grid, options, dice_);
  for (std::int64_t turn = 0; turn < blocks.count(); ++turn) run_block(blocks[turn], turn);
  acquire(&finish_order_);
}

/// A fiber's life: one thread's kernel after another.
void Machine::run_fiber(void* of_machine) {
  Machine& machine = *static_cast<Machine*>(of_machine);
  while (!machine.is_stopping_) {
    Thread& self = *machine.running_;
    acquire(&machine.launch_order_);
    acquire(&machine.stage_->turns[(machine.stage_->turn + 1) % 2]);
    try {
      machine.body_(machine.argument_);
    } catch (const Unwind&) {
    }
    release(&machine.stage_->turns[machine.stage_->turn % 2]);
    release(&machine.finish_order_);
    self.state = Thread::State::returned;
    ++machine.num_returned_;
    --machine.num_ready_;
    if (!machine.start_next()) self.fiber->suspend();
  }
}

/// Lets the fiber of the thread that has returned run the next in order, unless that one has a
/// stack of its own already: a switch of fibers costs more than most threads do.
bool Machine::start_next() {
  if (kThreadSanitizer || is_unwinding_ || !fault_.empty()) return false;
  if (turn_ + 1 == order_.size()) return false;
  Thread& next = thread(order_[turn_ + 1]);
  if (next.has_started) return false;
  ++turn_;
  std::swap(next.fiber, running_->fiber);
  start(next);
  return true;
}

void Machine::start(Thread& it) {
  running_ = &it;
  current_thread = &it.at;
  it.has_started = true;
}

void Machine::prepare_threads(std::int64_t number) {
  auto& threads = stage_->threads;
  while (std::ssize(threads) < num_threads_) {
    threads.push_back(std::make_unique<Thread>());
    Thread& added = *threads.back();
    added.index = static_cast<int>(threads.size()) - 1;
    added.fiber = std::make_unique<Fiber>(run_fiber, this);
  }
  const Dim3 block = unflatten(number, shape_.grid);
  for (int i = 0; i < num_threads_; ++i) {
    Thread& it = thread(i);
    it.at = {unflatten(i, shape_.block), block, shape_.block, shape_.grid};
    it.state = Thread::State::ready;
    it.has_started = false;
    if constexpr (kThreadSanitizer) {
      running_ = &it;
      it.fiber->set_name(whereabouts().c_str());
    }
  }
}

void Machine::run_block(std::int64_t number, std::int64_t turn) {
  stage_ = &stages_[kThreadSanitizer ? static_cast<std::size_t>(turn % 2) : 0];
  ++stage_->turn;
  prepare_threads(number);
  stage_->arena.start_block();
  num_ready_ = num_threads_;
  num_returned_ = 0;
  order_threads(order_, num_threads_, run_options().schedule, dice_);
  while (num_returned_ < num_threads_) {
    if (num_ready_ == 0) settle();
    run_ready_threads();
  }
  if (const Arena::Array* array = stage_->arena.find_overrun()) {
    fail<KernelFault>("[",
                      shape_.name,
                      "] kernel wrote outside the shared array ",
                      array->name,
                      " of ",
                      array->bytes,
                      " bytes, in block ",
                      running_->at.block,
                      "; an address sanitizer build names the line");
  }
}

void Machine::run_ready_threads() {
  if (run_options().schedule == Schedule::random) std::shuffle(order_.begin(), order_.end(), dice_);
  for (turn_ = 0; turn_ < order_.size(); ++turn_) {
    Thread& it = thread(order_[turn_]);
    if (it.state != Thread::State::ready) continue;
    start(it);
    it.fiber->resume();
    if (!fault_.empty()) unwind();
  }
}

/// Ends all threads of the block, then throws what is in fault_.
void Machine::unwind() {
  is_unwinding_ = true;
  for (int i = 0; i < num_threads_; ++i) {
    const Thread& it = thread(i);
    if (it.has_started && it.state != Thread::State::returned) it.fiber->resume();
  }
  is_unwinding_ = false;
  acquire(&finish_order_);
  throw KernelFault(std::exchange(fault_, {}));
}

/// Leaves the running thread until another makes it ready.
void Machine::suspend() {
  --num_ready_;
  Thread& self = *running_;
  self.fiber->suspend();
  if (is_unwinding_) throw Unwind{};
}

void Machine::sync_block(Site site) {
  char* const epoch = &stage_->barrier_epochs[barrier_epoch_ % 2];
  running_->site = site;
  running_->state = Thread::State::at_barrier;
  release(epoch);
  suspend();
  acquire(epoch);
}

/// No thread can run: opens the barrier that all wait at, or says what is wrong.
void Machine::settle() {
  const Thread& first = thread(0);
  bool is_barrier = true;
  for (int i = 0; i < num_threads_; ++i) {
    const Thread& it = thread(i);
    if (it.state == Thread::State::at_warp) report_warp(it);
    is_barrier &= it.state == Thread::State::at_barrier && is_same(it.site, first.site);
  }
  if (!is_barrier) report_barrier();
  for (int i = 0; i < num_threads_; ++i) thread(i).state = Thread::State::ready;
  num_ready_ = num_threads_;
  ++barrier_epoch_;
}

void* Machine::shared_array(
    const void* key, const char* name, std::size_t bytes, bool is_static, Site site) {
  void* const array = stage_->arena.find_or_add(key, name, bytes, is_static);
  if (array == nullptr) {
    fault(text("shared memory of a block is at most ",
               Arena::kMaxStatic,
               " bytes declared and ",
               Arena::kMaxTotal,
               " in all, exceeded by ",
               name,
               " with ",
               bytes),
          site);
  }
  return array;
}

RunOptions& run_options() {
  thread_local RunOptions options;
  return options;
}

void run_grid(const LaunchShape& shape, void (*body)(void*), void* argument) {
  machine().run(shape, body, argument);
}

void sync_block(Site site) { machine().sync_block(site); }

void* shared_array(const void* key, const char* name, std::size_t bytes, Site site) {
  return machine().shared_array(key, name, bytes, true, site);
}

void* dynamic_shared_array(Site site) {
  static const char key = 0;
  Machine& it = machine();
  return it.shared_array(&key, "dynamic", it.dynamic_shared(), false, site);
}

}  // namespace accrue::simt
