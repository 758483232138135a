// Contract 11 without the library's code, for tests.
#pragma once

#include <cstddef>
#include <vector>

namespace accrue::test {

/// Sums values[j] for all j: blocks of 1,024 elements in 32 partials, folded by halves, closed with
/// + 0, combined pairwise level by level.
template <class T>
T sum_by_contract(const std::vector<T>& values) {
  std::vector<T> nodes;
  for (std::size_t begin = 0; begin < values.size(); begin += 1024) {
    T partial[32] = {};
    for (std::size_t j = begin; j < values.size() && j < begin + 1024; ++j) {
      partial[(j - begin) % 32] += values[j];
    }
    for (int width = 16; width > 0; width /= 2) {
      for (int i = 0; i < width; ++i) partial[i] += partial[i + width];
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

}  // namespace accrue::test
