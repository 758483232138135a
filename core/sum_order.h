// The one order in which the elements of a row are summed (contract 11), and the row maximum.
//
// A row is cut into blocks of 1,024 elements. In a block, element j belongs to partial j mod 32;
// each partial starts at +0 and takes its elements in ascending order. The partials fold by
// xor 16, 8, 4, 2, 1 (first[i] + first[i + 16], and so on), and the block closes with + 0, which
// turns -0 into +0. Blocks combine by the aligned binary tree over block numbers, left + right; a
// node without a right half is its left half. So the sum of nothing is +0 and zeros appended on
// the right never change the bits.
#pragma once

#include "accrue/core/host_device.h"

#include <cstdint>

namespace accrue {

inline constexpr std::int64_t kSumBlock = 1024;
inline constexpr int kSumPartials = 32;

/// Combines block results that arrive in ascending order by the aligned binary tree.
template <class T>
class BlockTree {
 public:
  ACCRUE_HD void push(T value) {
    for (std::int64_t number = count_++; number & 1; number >>= 1)
      value = pending_[--size_] + value;
    pending_[size_++] = value;
  }
  /// The whole tree; +0 when nothing was pushed.
  ACCRUE_HD T result() const {
    if (size_ == 0) return T(0);
    T total = pending_[size_ - 1];
    for (int i = size_ - 2; i >= 0; --i) total = pending_[i] + total;
    return total;
  }

 private:
  T pending_[54];  // finished left halves, outermost first; 2^54 blocks are 2^64 elements
  int size_ = 0;
  std::int64_t count_ = 0;
};

/// One block: elements [begin, begin + count), count <= kSumBlock, by `acc = step(acc, j)`.
template <class T, class Step>
ACCRUE_HD T accumulate_block(std::int64_t begin, std::int64_t count, Step step) {
  if (count <= 4) {  // the other partials are +0 and change nothing before the block closes
    T few[4] = {};
    for (std::int64_t i = 0; i < count; ++i) few[i] = step(T(0), begin + i);
    return ((few[0] + few[2]) + (few[1] + few[3])) + T(0);
  }
  T partial[kSumPartials] = {};
  const std::int64_t whole = count & -kSumPartials;
  for (std::int64_t j = 0; j < whole; j += kSumPartials) {
    for (int i = 0; i < kSumPartials; ++i) partial[i] = step(partial[i], begin + j + i);
  }
  for (int i = 0; i < static_cast<int>(count - whole); ++i) {
    partial[i] = step(partial[i], begin + whole + i);
  }
  for (int width = kSumPartials / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) partial[i] = partial[i] + partial[i + width];
  }
  return partial[0] + T(0);
}

/// Accumulates elements 0 .. n-1 in the order of contract 11 with `acc = step(acc, j)`.
///
/// For sums of products: step = [&](T acc, int64 j) { return fma(x[j], y[j], acc); }. Padding on
/// the right is neutral when step(acc, j) is acc (or +0 for -0) there.
template <class T, class Step>
ACCRUE_HD T accumulate_in_order(std::int64_t n, Step step) {
  if (n <= kSumBlock) return accumulate_block<T>(0, n, step);
  BlockTree<T> tree;
  for (std::int64_t begin = 0; begin < n; begin += kSumBlock) {
    const std::int64_t count = n - begin < kSumBlock ? n - begin : kSumBlock;
    tree.push(accumulate_block<T>(begin, count, step));
  }
  return tree.result();
}

/// Sum of load(0) .. load(n-1) in the order of contract 11.
template <class T, class Load>
ACCRUE_HD T sum_in_order(std::int64_t n, Load load) {
  return accumulate_in_order<T>(n, [load](T acc, std::int64_t j) { return acc + load(j); });
}

/// Maximum of load(0) .. load(n-1): exact, so free of order. NaN if any element is NaN; -inf for
/// n = 0; a maximum of zero comes out as +0, whatever the signs.
template <class T, class Load>
ACCRUE_HD T max_in_order(std::int64_t n, Load load) {
  constexpr T kLowest = -static_cast<T>(__builtin_huge_val());
  const auto larger = [](T a, T x) { return (x > a) || (x != x) ? x : a; };
  if (n <= 4) {
    T best = kLowest;
    for (std::int64_t j = 0; j < n; ++j) best = larger(best, load(j));
    return best + T(0);
  }
  T best[kSumPartials];
  for (T& value : best) value = kLowest;
  const std::int64_t whole = n & -std::int64_t{kSumPartials};
  for (std::int64_t j = 0; j < whole; j += kSumPartials) {
    for (int i = 0; i < kSumPartials; ++i) best[i] = larger(best[i], load(j + i));
  }
  for (std::int64_t j = whole; j < n; ++j) best[j - whole] = larger(best[j - whole], load(j));
  for (int width = kSumPartials / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) best[i] = larger(best[i], best[i + width]);
  }
  return best[0] + T(0);
}

}  // namespace accrue
