// Contract 11 read literally: what core/sum_order.h must equal in every bit. Slow and plain.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace accrue::test {

/// Accumulates elements 0 .. n-1 with acc = step(acc, j): per block of 1,024 a list of 32 partials
/// folded by xor, over the blocks a tree built level by level.
template <class T, class Step>
T literal_accumulate(std::int64_t n, const Step& step) {
  std::vector<T> nodes;
  for (std::int64_t begin = 0; begin < n; begin += 1024) {
    std::vector<T> partial(32, T(0));
    for (std::int64_t j = begin; j < std::min(begin + 1024, n); ++j) {
      T& p = partial[static_cast<std::size_t>((j - begin) % 32)];
      p = step(p, j);
    }
    for (const std::size_t mask : {16U, 8U, 4U, 2U, 1U}) {
      const auto before = partial;
      for (std::size_t i = 0; i < 32; ++i) partial[i] = before[i] + before[i ^ mask];
    }
    nodes.push_back(partial[0] + T(0));
  }
  while (nodes.size() > 1) {
    std::vector<T> parents;
    for (std::size_t i = 0; i < nodes.size(); i += 2) {
      parents.push_back(i + 1 < nodes.size() ? nodes[i] + nodes[i + 1] : nodes[i]);
    }
    nodes = parents;
  }
  return nodes.empty() ? T(0) : nodes[0];
}

template <class T, class Load>
T literal_sum(std::int64_t n, const Load& load) {
  return literal_accumulate<T>(n, [&](T acc, std::int64_t j) { return acc + load(j); });
}

}  // namespace accrue::test
