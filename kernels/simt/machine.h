// Machine: the fibers, shared memory and schedule that run a block.
#pragma once

#include "accrue/kernels/simt/arena.h"
#include "accrue/kernels/simt/fiber.h"
#include "accrue/kernels/simt/simt.h"

#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace accrue::simt {

inline constexpr int kWarp = 32;

/// Thrown through a kernel to leave it; no Error, so that nothing catches it on the way.
struct Unwind {};

/// A CUDA thread: where it stands and, while it waits, for what.
struct Thread {
  enum class State : std::uint8_t { ready, at_barrier, at_warp, returned };

  Coordinates at;
  State state = State::returned;
  bool has_started = false;
  int index = 0;  ///< in its block
  Site site;      ///< where it waits
  WarpOp op = WarpOp::sync;
  unsigned mask = 0;
  int argument = 0, width = 0;
  std::uint64_t value = 0, result = 0;
  std::unique_ptr<Fiber> fiber;
};

/// What blocks leave behind. The race detector alternates two of them, so that neighbouring blocks
/// share no stack, no shared memory and no order.
struct Stage {
  std::vector<std::unique_ptr<Thread>> threads;  ///< never fewer than before
  Arena arena;
  std::array<char, 2> barrier_epochs{};                 ///< addresses for the race detector
  std::array<std::array<char, 2>, 1024> warp_epochs{};  ///< by first lane of the mask
  std::array<unsigned char, 1024> warp_parity{};
  /// A block follows the one before on this stage, by two addresses in turn: with one, a thread
  /// that starts late would seem to follow threads of its own block that have returned.
  std::array<char, 2> turns{};
  unsigned turn = 0;
};

/// Runs grids, one block after another.
class Machine {
 public:
  ~Machine();
  void run(const LaunchShape& shape, void (*body)(void*), void* argument);

  // Called by the running thread.
  void sync_block(Site site);
  std::uint64_t meet_warp(
      WarpOp op, unsigned mask, std::uint64_t value, int argument, int width, Site site);
  void* shared_array(const void* key, const char* name, std::size_t bytes, bool is_static, Site);
  [[noreturn]] void fault(const std::string& what, Site site);
  std::size_t dynamic_shared() const { return shape_.dynamic_shared; }
  /// "kernel k, block (0, 0, 0), thread (5, 0, 0)".
  std::string whereabouts() const;

 private:
  static void run_fiber(void* machine);
  void run_block(std::int64_t number, std::int64_t turn);
  void prepare_threads(std::int64_t number);
  void run_ready_threads();
  bool start_next();
  void start(Thread& it);
  [[noreturn]] void unwind();
  void suspend();
  void settle();
  [[noreturn]] void report_warp(const Thread& waiting);
  [[noreturn]] void report_barrier();
  [[noreturn]] void report(const std::string& what, const Thread& at);
  void complete_warp(const Thread& last);
  std::uint64_t result_of(const Thread& thread);
  Thread& thread(int index) const { return *stage_->threads[static_cast<std::size_t>(index)]; }

  LaunchShape shape_;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  std::array<Stage, 2> stages_;
  Stage* stage_ = nullptr;
  Thread* running_ = nullptr;
  std::vector<int> order_;
  std::size_t turn_ = 0;  ///< in order_, of the thread that runs
  std::mt19937_64 dice_;
  int num_threads_ = 0, num_ready_ = 0, num_returned_ = 0;
  unsigned barrier_epoch_ = 0;
  bool is_unwinding_ = false, is_stopping_ = false;
  std::string fault_;
  char launch_order_ = 0, finish_order_ = 0;  // addresses for the race detector
};

Machine& machine();

}  // namespace accrue::simt
