// Windows read literally: which positions a lane holds, and the tree over the lanes.
#pragma once

#include "accrue/autograd/lane_accumulator.h"
#include "accrue/tests/support/array.h"

#include <random>

namespace accrue::test {

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

/// Contract 2: lane l holds positions [floor(l B / L), floor((l + 1) B / L)), cut at the size of
/// the window.
inline Range lane_positions(const WindowSpan& span, int lane) {
  const std::int64_t size = span.lanes.nominal_size, count = span.lanes.count;
  return {std::min(lane * size / count, span.size), std::min((lane + 1) * size / count, span.size)};
}

/// Contract 5 and 6: closes each lane, then left + right over the aligned binary tree.
inline std::vector<float> tree(std::vector<std::vector<float>> lanes) {
  for (std::vector<float>& lane : lanes) {
    for (float& value : lane) value += 0.0f;
  }
  while (lanes.size() > 1) {
    std::vector<std::vector<float>> parents;
    for (std::size_t n = 0; n < lanes.size(); n += 2) {
      parents.push_back(lanes[n]);
      for (std::size_t i = 0; i < lanes[n].size(); ++i) parents.back()[i] += lanes[n + 1][i];
    }
    lanes = std::move(parents);
  }
  return lanes[0];
}

/// Splits of [0, size) into micro-batches: of each size, in all ways if they are few, and by chance
/// with empty ones in between.
inline std::vector<std::vector<Range>> splits_of(std::int64_t size, std::mt19937_64& random) {
  std::vector<std::vector<Range>> splits;
  for (std::int64_t b = 1; b <= size; ++b) {
    splits.emplace_back();
    for (std::int64_t begin = 0; begin < size; begin += b) {
      splits.back().push_back({begin, std::min(begin + b, size)});
    }
  }
  for (unsigned cuts = 0; size <= 5 && cuts < 1U << (size - 1); ++cuts) {  // bit i: a cut at i + 1
    splits.emplace_back();
    std::int64_t begin = 0;
    for (std::int64_t i = 1; i <= size; ++i) {
      if (i < size && !(cuts >> (i - 1) & 1)) continue;
      splits.back().push_back({begin, i});
      begin = i;
    }
  }
  for (int i = 0; i < 3; ++i) {
    splits.emplace_back();
    for (std::int64_t begin = 0; begin < size;) {
      const auto left = static_cast<std::uint64_t>(size - begin);
      const std::int64_t end = begin + static_cast<std::int64_t>(random() % (left + 1));
      splits.back().push_back({begin, end});
      begin = end;
    }
  }
  return splits;
}

}  // namespace accrue::test
