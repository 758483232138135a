#include "accrue/kernels/cuda/lane_sums.h"

#include <algorithm>

namespace accrue::kernels::cuda {
namespace {

/// Runs a program on sums instead of numbers. A sum is in one place: it moves where it is used.
class SumTile {
 public:
  explicit SumTile(const LaneProgram& program)
      : slots_(static_cast<std::size_t>(program.num_buffers + program.num_scratch)) {
    for (std::int32_t slot = 0; slot < program.num_buffers; ++slot) {
      slots_[static_cast<std::size_t>(slot)] = {{slot, {slot}}, true};
    }
  }

  void zero() { acc_ = {{}, true}; }
  void load(int slot) { acc_ = {take(slots_[static_cast<std::size_t>(slot)]), true}; }
  void chain(std::int64_t begin, std::int64_t end) {
    LaneSum sum = take(acc_);
    add_rows(sum, begin, end);
    acc_ = {std::move(sum), true};
  }
  void close() {}
  void merge(int slot) {
    const LaneSum right = take(acc_);
    LaneSum sum = take(slots_[static_cast<std::size_t>(slot)]);
    sum.buffers.insert(sum.buffers.end(), right.buffers.begin(), right.buffers.end());
    for (const auto& [begin, end] : right.rows) add_rows(sum, begin, end);
    acc_ = {std::move(sum), true};
  }
  void store(int slot) {
    Place& place = slots_[static_cast<std::size_t>(slot)];
    place = {take(acc_), true};
    place.sum.slot = slot;
  }

  bool used_twice() const { return used_twice_; }
  /// Of the buffers that changed.
  std::vector<LaneSum> sums(std::int32_t num_buffers) const {
    std::vector<LaneSum> sums;
    for (std::int32_t slot = 0; slot < num_buffers; ++slot) {
      const auto& [sum, is_there] = slots_[static_cast<std::size_t>(slot)];
      const bool is_unchanged = sum.rows.empty() && sum.buffers == std::vector{slot};
      if (is_there && !is_unchanged) sums.push_back(sum);
    }
    return sums;
  }

 private:
  struct Place {
    LaneSum sum = {};
    bool is_there = false;
  };

  LaneSum take(Place& place) {
    used_twice_ = used_twice_ || !place.is_there;
    return std::exchange(place, {}).sum;
  }
  /// Rows that follow each other are one product.
  static void add_rows(LaneSum& sum, std::int64_t begin, std::int64_t end) {
    if (begin == end) return;
    if (!sum.rows.empty() && sum.rows.back().second == begin) {
      sum.rows.back().second = end;
    } else {
      sum.rows.emplace_back(begin, end);
    }
  }

  std::vector<Place> slots_;
  Place acc_;
  bool used_twice_ = false;
};

}  // namespace

bool LaneSum::reads(std::int32_t buffer) const {
  return std::find(buffers.begin(), buffers.end(), buffer) != buffers.end();
}

bool find_lane_sums(const LaneProgram& program, std::vector<LaneSum>& sums) {
  SumTile tile(program);
  const auto& instructions = program.instructions;
  interpret(instructions.data(), instructions.data() + instructions.size(), tile);
  std::vector<LaneSum> left = tile.sums(program.num_buffers);
  while (!left.empty() && !tile.used_twice()) {
    const auto next = std::find_if(left.begin(), left.end(), [&](const LaneSum& sum) {
      return std::none_of(left.begin(), left.end(), [&](const LaneSum& other) {
        return &other != &sum && other.reads(sum.slot);
      });
    });
    if (next == left.end()) return false;
    sums.push_back(std::move(*next));
    left.erase(next);
  }
  return !tile.used_twice();
}

}  // namespace accrue::kernels::cuda
