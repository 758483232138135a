// WindowPlan: which positions of an epoch's order each rank sees, in which micro-batches.
#pragma once

#include "accrue/core/lanes.h"

#include <cstdint>
#include <vector>

namespace accrue::data {

/// How the positions of a window go to the ranks (contract 3).
enum class Dealing : std::uint8_t {
  contiguous,   ///< rank r walks lanes [floor(rL/W), floor((r+1)L/W)), at most b positions at once
  round_robin,  ///< micro-step t of rank r holds tWb + rb + [0, b), as Accelerate deals
};

/// Positions [begin, end).
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
  bool operator==(const Range&) const = default;
};

/// What one forward and backward of one rank sees.
struct MicroStep {
  std::int64_t window = 0;
  Range positions;           ///< in the window, counted from its first sample; may be empty
  bool ends_window = false;  ///< no later micro-step of this rank belongs to the window

  bool operator==(const MicroStep&) const = default;
};

struct WindowPlanOptions {
  std::int64_t num_samples = 0;           ///< n, of one epoch
  std::int64_t global_batch_size = 1;     ///< B, samples between two optimizer steps
  std::int64_t micro_batch_size = 1;      ///< b, samples on one rank at once
  int lanes = 8;                          ///< L, a power of two
  int world_size = 1;                     ///< W, ranks
  Dealing dealing = Dealing::contiguous;  ///< contiguous: every rank merges its own subtrees
  bool drop_last = false;                 ///< drop a window of fewer than B samples
};

inline constexpr int kMaxLanes = 1 << 15;

/// The windows of an epoch and their micro-steps per rank: a pure function of its options.
///
/// Window k holds positions [kB, min((k+1)B, n)) of the epoch's order. In it every position lies in
/// exactly one micro-step of one rank, every lane on one rank, and the lanes of a rank ascend. All
/// ranks have the same number of micro-steps, at least one, in a window, so that collectives of a
/// loop's body meet: a rank whose data end earlier has empty ones last.
///
/// Errors:  IndexError for a window, rank, lane or step outside the plan.
/// Cost:    constant time per question, or W for a short window; nothing is stored per window.
/// Source:  docs/numerics.md, rules 1 to 4.
class WindowPlan {
 public:
  /// Errors: ValueError naming the values that would work: n < 0, B < 1, b < 1; L no power of two
  /// in [1, kMaxLanes]; W outside [1, L]; round robin that cuts a lane between ranks in any window;
  /// drop_last that leaves samples but no window.
  explicit WindowPlan(const WindowPlanOptions& options);

  const WindowPlanOptions& options() const { return options_; }
  /// The lanes of every window, also of a short one.
  Lanes lanes() const { return {options_.global_batch_size, options_.lanes}; }

  std::int64_t num_windows() const;
  /// Positions of a window in the epoch's order.
  Range window(std::int64_t window) const;
  /// The rank that holds a lane. A lane that is empty for this B belongs to a rank, too.
  int rank_of(int lane) const;
  /// Ascending; a run without gaps under contiguous dealing; may be empty under round robin.
  std::vector<int> lanes_of(int rank) const;

  /// On every rank; at least 1.
  std::int64_t steps_in_window(std::int64_t window) const;
  std::vector<MicroStep> steps(int rank, std::int64_t window) const;
  /// The epoch of a rank as one sequence: step(rank, i) for i in [0, steps_in_epoch()).
  std::int64_t steps_in_epoch() const;
  MicroStep step(int rank, std::int64_t index) const;

 private:
  std::int64_t window_size(std::int64_t window) const;
  Range share(int rank, std::int64_t window_size) const;
  std::int64_t count_steps(std::int64_t window_size) const;
  MicroStep step_at(int rank, std::int64_t window, std::int64_t index) const;
  void check_rank(int rank) const;
  void check_window(std::int64_t window) const;

  WindowPlanOptions options_;
  std::int64_t steps_in_full_ = 0;  ///< micro-steps of a window of B samples
};

}  // namespace accrue::data
