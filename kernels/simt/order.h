// The order in which a schedule runs blocks and threads.
#pragma once

#include "accrue/kernels/simt/simt.h"

#include <random>
#include <vector>

namespace accrue::simt {

/// The blocks of a launch in the order of their turns.
class BlockOrder {
 public:
  BlockOrder(Dim3 grid, const RunOptions& options, std::mt19937_64& dice);
  std::int64_t count() const { return count_; }
  std::int64_t operator[](std::int64_t turn) const;

 private:
  Schedule schedule_;
  std::int64_t begin_, count_;
  std::vector<std::int64_t> shuffled_;
};

/// Makes `order` a permutation of 0 .. count-1.
void order_threads(std::vector<int>& order, int count, Schedule schedule, std::mt19937_64& dice);

}  // namespace accrue::simt
