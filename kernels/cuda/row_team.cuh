// RowTeam: the threads that work on one row, and sums and maxima over it in the order of
// contract 11.
//
// A team is one warp, several of which share a block, or a whole block. A warp adds a block of
// 1,024 elements: lane l takes the elements j with j mod 32 = l, in order, then the lanes fold by
// xor 16, 8, 4, 2, 1. A turn of the team adds as many blocks as it has warps, and folds them and
// the turns before by the aligned tree. So the bits equal core/sum_order.h, whatever the team.
#pragma once

#include "accrue/core/sum_order.h"
#include "accrue/kernels/cuda/platform.h"

namespace accrue::kernels::cuda {

static_assert(kSumPartials == kWarpSize);

inline constexpr int kRowThreads = 256;

/// The aligned tree over turns, in registers: level l holds the sum of 2^l turns.
template <int kLevels>
class TurnTree {
 public:
  ACCRUE_DEVICE void push(float value) {
    bool carries = true;
    ACCRUE_UNROLL
    for (int level = 0; level < kLevels; ++level) {
      const bool is_full = (count_ >> level & 1) != 0;
      if (carries && is_full) value = pending_[level] + value;
      if (carries && !is_full) pending_[level] = value;
      carries = carries && is_full;
    }
    ++count_;
  }
  ACCRUE_DEVICE float result() const {
    float total = 0.0f;
    bool is_empty = true;
    ACCRUE_UNROLL
    for (int level = 0; level < kLevels; ++level) {
      if ((count_ >> level & 1) == 0) continue;
      total = is_empty ? pending_[level] : pending_[level] + total;
      is_empty = false;
    }
    return total;
  }

 private:
  float pending_[kLevels] = {};
  int count_ = 0;
};

/// kWarps is 1, or the number of warps of a block: 8, or 32 for rows in shared memory.
template <int kWarps>
struct RowTeam {
  static constexpr int kThreads = kWarps * kWarpSize;
  static constexpr int kRowsPerBlock = kWarps == 1 ? kRowThreads / kThreads : 1;
  static constexpr int kLevels = kWarps == 1 ? 1 : kWarps == kWarpSize ? 2 : 16;
  /// Columns that the tree has levels for.
  static constexpr std::int64_t kMaxColumns =
      kWarps == 1 ? kSumBlock : kSumBlock * kWarps << kLevels;

  /// `shared` are 2 * kWarps floats of the block.
  explicit ACCRUE_DEVICE RowTeam(float* shared) : shared_(shared) {}

  static ACCRUE_DEVICE std::int64_t row() {
    return std::int64_t{block_x()} * kRowsPerBlock + thread_index() / kThreads;
  }
  static ACCRUE_DEVICE int index() { return thread_index() % kThreads; }
  static ACCRUE_DEVICE int warp() { return index() / kWarpSize; }
  static ACCRUE_DEVICE int lane() { return thread_index() % kWarpSize; }

  /// accumulate_in_order of core/sum_order.h; all threads get the sum.
  template <class Step>
  ACCRUE_DEVICE float accumulate(std::int64_t n, Step step) {
    TurnTree<kLevels> tree;
    for (std::int64_t begin = 0; begin < n; begin += kSumBlock * kWarps) {
      const std::int64_t first = begin + kSumBlock * warp();
      const std::int64_t end = first + kSumBlock < n ? first + kSumBlock : n;
      float partial = 0.0f;
      for (std::int64_t j = first + lane(); j < end; j += kWarpSize) partial = step(partial, j);
      ACCRUE_UNROLL
      for (int width = kWarpSize / 2; width > 0; width /= 2) partial += shuffle_xor(partial, width);
      const std::int64_t blocks = (n - begin + kSumBlock - 1) / kSumBlock;
      tree.push(fold(partial + 0.0f, blocks < kWarps ? static_cast<int>(blocks) : kWarps));
    }
    return tree.result();
  }
  template <class Load>
  ACCRUE_DEVICE float sum(std::int64_t n, Load load) {
    return accumulate(n, [=](float acc, std::int64_t j) { return acc + load(j); });
  }

  /// one(c) for each of the n elements of a row, or quad(c) for elements [c, c + 4): from `head` on
  /// every fourth is aligned to 16 bytes.
  template <int kUnroll, class Quad, class One>
  static ACCRUE_DEVICE void visit(std::int64_t n, std::int64_t head, Quad quad, One one) {
    if (head > n) head = n;
    const std::int64_t tail = head + (n - head) / 4 * 4;
    ACCRUE_UNROLL_BY(kUnroll)
    for (std::int64_t c = head + 4 * index(); c < tail; c += 4 * kThreads) quad(c);
    ACCRUE_NO_UNROLL
    for (std::int64_t edge = index(); edge < head + n - tail; edge += kThreads) {
      one(edge < head ? edge : edge - head + tail);
    }
  }

  /// A place to read the row at x from, where it pays: x itself.
  static ACCRUE_DEVICE const float* keep(const float* x, std::int64_t) { return x; }

  /// max_in_order of core/sum_order.h; all threads get the maximum.
  template <class Load>
  ACCRUE_DEVICE float max(std::int64_t n, Load load) {
    const auto larger = [](float a, float x) { return (x > a) || (x != x) ? x : a; };
    float best = -__builtin_huge_valf();
    for (std::int64_t j = index(); j < n; j += kThreads) best = larger(best, load(j));
    ACCRUE_UNROLL
    for (int width = kWarpSize / 2; width > 0; width /= 2) {
      best = larger(best, shuffle_xor(best, width));
    }
    if constexpr (kWarps > 1) {
      float* const results = exchange(best);
      for (int w = 0; w < kWarps; ++w) best = larger(best, results[w]);
    }
    return best + 0.0f;
  }

 private:
  float* shared_;
  int parity_ = 0;

  /// One value of each warp, for all threads, until the exchange after the next.
  ACCRUE_DEVICE float* exchange(float value) {
    float* const results = shared_ + parity_ * kWarps;
    parity_ = 1 - parity_;
    if (lane() == 0) results[warp()] = value;
    sync_block();
    return results;
  }

  /// The aligned tree over the first `count` warps.
  ACCRUE_DEVICE float fold(float value, int count) {
    if constexpr (kWarps == 1) return value;
    const float* const results = exchange(value);
    float node = results[lane() % kWarps];
    ACCRUE_UNROLL
    for (int width = 1; width < kWarps; width *= 2) {
      const float right = shuffle_down(node, width);
      if (lane() + width < count) node = node + right;
    }
    return shuffle(node, 0);
  }
};

/// Calls body(team, n) with a team for each row n.
template <int kWarps, class Body>
ACCRUE_KERNEL(kRowThreads)
void row_kernel(ACCRUE_PARAMETER Body body, std::int64_t rows) {
  ACCRUE_SHARED(float, shared, 2 * kWarps);
  RowTeam<kWarps> team(shared);
  if (team.row() < rows) body(team, team.row());
}

/// Runs body on all rows, with a team of kWarps for each.
template <int kWarps, class Body>
void launch_teams(const char* name, std::int64_t rows, const Body& body, Stream stream) {
  constexpr int kRows = RowTeam<kWarps>::kRowsPerBlock;
  if (rows == 0) return;
  launch({.name = name,
          .grid_x = (rows + kRows - 1) / kRows,
          .threads = kRowThreads,
          .stream = stream},
         row_kernel<kWarps, Body>,
         body,
         rows);
}

/// Runs body on all rows, with a block for each.
///
/// Errors:  ShapeError for more than 2^29 columns.
template <class Body>
void launch_long_rows(
    const char* name, std::int64_t rows, std::int64_t columns, const Body& body, Stream stream) {
  constexpr int kWarps = kRowThreads / kWarpSize;
  ACCRUE_CHECK(columns <= RowTeam<kWarps>::kMaxColumns,
               ShapeError,
               name,
               "rows have at most 536870912 elements on CUDA, got ",
               columns,
               "; split them");
  launch_teams<kWarps>(name, rows, body, stream);
}

/// Runs body on all rows: a warp for each where `columns` are few, else a block.
///
/// Errors:  as launch_long_rows().
template <class Body>
void launch_rows(
    const char* name, std::int64_t rows, std::int64_t columns, const Body& body, Stream stream) {
  if (columns <= kSumBlock) {
    launch_teams<1>(name, rows, body, stream);
  } else {
    launch_long_rows(name, rows, columns, body, stream);
  }
}

}  // namespace accrue::kernels::cuda
