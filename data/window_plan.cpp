#include "accrue/data/window_plan.h"

#include "accrue/core/error.h"

#include <algorithm>
#include <bit>
#include <string>

namespace accrue::data {
namespace {

constexpr const char* kName = "window_plan";

/// ceil(count / size) for count >= 0, without overflow.
std::int64_t num_chunks(std::int64_t count, std::int64_t size) {
  return count / size + (count % size != 0);
}

std::int64_t longest_window(const WindowPlanOptions& o) {
  return std::min(o.num_samples, o.global_batch_size);
}

/// The first lane with positions below `window_size` on two ranks when blocks of b go round robin;
/// -1 if there is none. Each border between blocks has to be a border of lanes, so the loop ends
/// after at most L borders.
int first_cut_lane(const Lanes& lanes, std::int64_t b, std::int64_t window_size) {
  for (std::int64_t border = b; border < window_size; border += std::min(b, window_size - border)) {
    const int lane = lanes.lane_of(border);
    if (lanes.begin(lane) != border) return lane;
  }
  return -1;
}

/// Values that make an illegal round robin legal, each by changing one option, for its error
/// message. A lane that is cut has two positions, so B > L and no lane is empty.
std::string legal_choices(const WindowPlanOptions& o) {
  const std::int64_t longest = longest_window(o);
  const Lanes lanes{o.global_batch_size, o.lanes};
  std::string choices = "contiguous dealing";
  int num_sizes = 0;
  for (int lane = 1; lane < o.lanes && num_sizes < 4; ++lane) {
    const std::int64_t b = lanes.begin(lane);
    if (b >= longest || first_cut_lane(lanes, b, longest) >= 0) continue;
    choices += text(num_sizes++ ? " or " : ", micro_batch_size ", b);
  }
  // Doubling L keeps all borders of lanes, so fewer lanes cannot help.
  for (int count = 2 * o.lanes; count <= kMaxLanes; count *= 2) {
    const Lanes other{o.global_batch_size, count};
    if (first_cut_lane(other, o.micro_batch_size, longest) >= 0) continue;
    return choices + text(", lanes ", count);
  }
  return choices;
}

void check_numbers(const WindowPlanOptions& o) {
  ACCRUE_CHECK(
      o.num_samples >= 0, ValueError, kName, "num_samples must be >= 0, got ", o.num_samples);
  ACCRUE_CHECK(o.global_batch_size >= 1,
               ValueError,
               kName,
               "global_batch_size must be >= 1, got ",
               o.global_batch_size,
               "; the default is world_size * accumulation steps * micro_batch_size");
  ACCRUE_CHECK(o.micro_batch_size >= 1,
               ValueError,
               kName,
               "micro_batch_size must be >= 1, got ",
               o.micro_batch_size);
  ACCRUE_CHECK(!o.drop_last || o.num_samples == 0 || o.num_samples >= o.global_batch_size,
               ValueError,
               kName,
               "drop_last must leave a window, got ",
               o.num_samples,
               " samples for global_batch_size ",
               o.global_batch_size,
               "; use global_batch_size <= ",
               o.num_samples,
               " or drop_last = false");
}

void check_lanes(int lanes) {
  const auto unsigned_lanes = static_cast<unsigned>(std::clamp(lanes, 1, kMaxLanes));
  const unsigned lower = std::bit_floor(unsigned_lanes), upper = std::bit_ceil(unsigned_lanes);
  ACCRUE_CHECK(lanes >= 1 && lanes <= kMaxLanes && std::has_single_bit(unsigned_lanes),
               ValueError,
               kName,
               "lanes must be a power of two in [1, ",
               kMaxLanes,
               "], got ",
               lanes,
               "; use ",
               lower,
               lower < upper ? text(" or ", upper) : std::string());
}

void check_dealing(const WindowPlanOptions& o) {
  ACCRUE_CHECK(o.world_size >= 1 && o.world_size <= kMaxLanes,
               ValueError,
               kName,
               "world_size must lie in [1, ",
               kMaxLanes,
               "], got ",
               o.world_size);
  ACCRUE_CHECK(o.world_size <= o.lanes,
               ValueError,
               kName,
               "every rank needs a lane of its own, got ",
               o.world_size,
               " ranks for lanes = ",
               o.lanes,
               "; use lanes >= ",
               std::bit_ceil(static_cast<unsigned>(o.world_size)),
               " or world_size <= ",
               o.lanes);
  if (o.dealing == Dealing::contiguous || o.world_size == 1) return;
  const Lanes lanes{o.global_batch_size, o.lanes};
  // A short window cuts lanes, never joins them: what is legal in the longest one is legal in all.
  const int cut = first_cut_lane(lanes, o.micro_batch_size, longest_window(o));
  ACCRUE_CHECK(cut < 0,
               ValueError,
               kName,
               "round_robin must leave every lane on one rank, got lane ",
               cut,
               " with positions ",
               lanes.begin(cut),
               " to ",
               lanes.begin(cut + 1) - 1,
               " on two ranks for micro_batch_size ",
               o.micro_batch_size,
               ", global_batch_size ",
               o.global_batch_size,
               ", lanes ",
               o.lanes,
               "; use one of: ",
               legal_choices(o));
}

}  // namespace

WindowPlan::WindowPlan(const WindowPlanOptions& options) : options_(options) {
  check_numbers(options);
  check_lanes(options.lanes);
  check_dealing(options);
  steps_in_full_ = count_steps(options.global_batch_size);
}

void WindowPlan::check_rank(int rank) const {
  ACCRUE_CHECK(rank >= 0 && rank < options_.world_size,
               IndexError,
               kName,
               "rank must lie in [0, ",
               options_.world_size,
               "), got ",
               rank);
}

void WindowPlan::check_window(std::int64_t window) const {
  ACCRUE_CHECK(window >= 0 && window < num_windows(),
               IndexError,
               kName,
               "window must lie in [0, ",
               num_windows(),
               "), got ",
               window);
}

// ---- windows and lanes ----

std::int64_t WindowPlan::num_windows() const {
  const std::int64_t num_full = options_.num_samples / options_.global_batch_size;
  return options_.drop_last ? num_full
                            : num_chunks(options_.num_samples, options_.global_batch_size);
}

std::int64_t WindowPlan::window_size(std::int64_t window) const {
  const std::int64_t start = window * options_.global_batch_size;
  return std::min(options_.global_batch_size, options_.num_samples - start);
}

Range WindowPlan::window(std::int64_t window) const {
  check_window(window);
  const std::int64_t begin = window * options_.global_batch_size;
  return {begin, begin + window_size(window)};
}

int WindowPlan::rank_of(int lane) const {
  const std::int64_t num_lanes = options_.lanes;
  ACCRUE_CHECK(lane >= 0 && lane < num_lanes,
               IndexError,
               kName,
               "lane must lie in [0, ",
               num_lanes,
               "), got ",
               lane);
  const std::int64_t num_ranks = options_.world_size;
  if (options_.dealing == Dealing::round_robin) {
    return static_cast<int>(lanes().begin(lane) / options_.micro_batch_size % num_ranks);
  }
  // The largest r with floor(rL/W) <= lane, that is rL < (lane + 1)W.
  return static_cast<int>(((lane + 1) * num_ranks - 1) / num_lanes);
}

std::vector<int> WindowPlan::lanes_of(int rank) const {
  check_rank(rank);
  std::vector<int> result;
  for (int lane = 0; lane < options_.lanes; ++lane) {
    if (rank_of(lane) == rank) result.push_back(lane);
  }
  return result;
}

// ---- micro-steps ----

/// What a rank walks in a window: positions under contiguous dealing, blocks of b under round
/// robin.
Range WindowPlan::share(int rank, std::int64_t window_size) const {
  const std::int64_t num_ranks = options_.world_size;
  if (options_.dealing == Dealing::round_robin) {
    const std::int64_t blocks = num_chunks(window_size, options_.micro_batch_size);
    return {0, num_chunks(std::max<std::int64_t>(blocks - rank, 0), num_ranks)};
  }
  const auto border = [&](std::int64_t r) {
    return std::min(lanes().begin(static_cast<int>(r * options_.lanes / num_ranks)), window_size);
  };
  return {border(rank), border(rank + 1)};
}

/// Of the rank that has most.
std::int64_t WindowPlan::count_steps(std::int64_t window_size) const {
  if (window_size == options_.global_batch_size && steps_in_full_ > 0) return steps_in_full_;
  std::int64_t longest = 1;
  for (int rank = 0; rank < options_.world_size; ++rank)
    longest = std::max(longest, share(rank, window_size).size());
  const bool in_blocks = options_.dealing == Dealing::round_robin;
  return in_blocks ? longest : num_chunks(longest, options_.micro_batch_size);
}

MicroStep WindowPlan::step_at(int rank, std::int64_t window, std::int64_t index) const {
  const std::int64_t size = window_size(window);
  const std::int64_t b = options_.micro_batch_size;
  const Range range = share(rank, size);
  const bool ends_window = index + 1 == count_steps(size);
  Range positions{size, size};
  if (options_.dealing == Dealing::contiguous) {
    positions.begin = range.begin + std::min(index * b, range.size());
    positions.end = positions.begin + std::min(b, range.end - positions.begin);
  } else if (index < range.end) {
    positions.begin = (index * options_.world_size + rank) * b;
    positions.end = positions.begin + std::min(b, size - positions.begin);
  }
  return {window, positions, ends_window};
}

std::int64_t WindowPlan::steps_in_window(std::int64_t window) const {
  check_window(window);
  return count_steps(window_size(window));
}

std::vector<MicroStep> WindowPlan::steps(int rank, std::int64_t window) const {
  check_rank(rank);
  std::vector<MicroStep> result(static_cast<std::size_t>(steps_in_window(window)));
  std::int64_t index = 0;
  for (MicroStep& step : result) step = step_at(rank, window, index++);
  return result;
}

std::int64_t WindowPlan::steps_in_epoch() const {
  const std::int64_t num_full = options_.num_samples / options_.global_batch_size;
  const std::int64_t count = num_full * steps_in_full_;
  return num_windows() > num_full ? count + count_steps(window_size(num_full)) : count;
}

MicroStep WindowPlan::step(int rank, std::int64_t index) const {
  check_rank(rank);
  const std::int64_t num_steps = steps_in_epoch();
  ACCRUE_CHECK(index >= 0 && index < num_steps,
               IndexError,
               kName,
               "step must lie in [0, ",
               num_steps,
               "), got ",
               index);
  // A short window has no more steps than a full one.
  return step_at(rank, index / steps_in_full_, index % steps_in_full_);
}

}  // namespace accrue::data
