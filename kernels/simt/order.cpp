#include "accrue/kernels/simt/order.h"

#include <algorithm>
#include <numeric>

namespace accrue::simt {

BlockOrder::BlockOrder(Dim3 grid, const RunOptions& options, std::mt19937_64& dice)
    : schedule_(options.schedule) {
  const std::int64_t blocks = std::int64_t{1} * static_cast<std::int64_t>(grid.x) *
                              static_cast<std::int64_t>(grid.y) * static_cast<std::int64_t>(grid.z);
  begin_ = std::min(options.block_begin, blocks);
  count_ = std::min(options.block_end, blocks) - begin_;
  if (schedule_ != Schedule::random) return;
  shuffled_.resize(static_cast<std::size_t>(count_));
  std::iota(shuffled_.begin(), shuffled_.end(), begin_);
  std::shuffle(shuffled_.begin(), shuffled_.end(), dice);
}

std::int64_t BlockOrder::operator[](std::int64_t turn) const {
  const std::int64_t num_even = (count_ + 1) / 2;
  switch (schedule_) {
    case Schedule::ascending:
      break;
    case Schedule::descending:
      return begin_ + count_ - 1 - turn;
    case Schedule::interleaved:
      return begin_ + (turn < num_even ? 2 * turn : 2 * (turn - num_even) + 1);
    case Schedule::random:
      return shuffled_[static_cast<std::size_t>(turn)];
  }
  return begin_ + turn;
}

void order_threads(std::vector<int>& order, int count, Schedule schedule, std::mt19937_64& dice) {
  order.resize(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  switch (schedule) {
    case Schedule::ascending:
      break;
    case Schedule::descending:
      std::reverse(order.begin(), order.end());
      break;
    case Schedule::interleaved:
      std::stable_sort(order.begin(), order.end(), [](int a, int b) { return a % 32 < b % 32; });
      break;
    case Schedule::random:
      std::shuffle(order.begin(), order.end(), dice);
      break;
  }
}

}  // namespace accrue::simt
