// The product kernel: each output element runs a lane program over the summed index k.
//
// A block of 256 threads computes a square tile of outputs; a thread holds its elements in
// registers. For a chain, 16 values of k at a time pass through shared memory, two stages in turn:
// while one is multiplied, the next is on its way. The bits do not depend on the tile. In a batch
// the grid has one dimension, since CUDA limits the others: lines of row tiles, of all products,
// one line for each tile of columns.
#pragma once

#include "accrue/kernels/cuda/product.h"
#include "accrue/kernels/scalar/float_ops.h"

namespace accrue::kernels::cuda {

inline constexpr int kProductThreads = 256, kProductDepth = 16;

/// Four elements of an operand: consecutive k of one i (`along_depth`) or consecutive i of one k.
/// What lies outside, or at a dead k, is `padding`.
ACCRUE_DEVICE Float4 fetch4(const Side& side,
                            std::int64_t offset,
                            const std::uint8_t* live,
                            std::int64_t i,
                            std::int64_t k,
                            std::int64_t end,
                            bool along_depth,
                            float padding) {
  const std::int64_t stride = along_depth ? side.depth_stride : side.stride;
  const std::int64_t room = along_depth ? end - k : side.count - i;
  const bool is_inside = along_depth ? i < side.count : k < end;
  const float* const p = side.data + (offset + i * side.stride + k * side.depth_stride);
  Float4 out{{padding, padding, padding, padding}};
  if (!is_inside || room <= 0 || (!along_depth && live != nullptr && !live[k])) return out;
  const bool checks_each = along_depth && live != nullptr;
  if (side.data != nullptr && stride == 1 && room >= 4 && !checks_each && is_aligned4(p)) {
    return load4(p);
  }
  ACCRUE_UNROLL
  for (int c = 0; c < 4; ++c) {
    if (c >= room || (checks_each && !live[k + c])) continue;
    out.v[c] = side.data == nullptr ? 1.0f : p[c * stride];
  }
  return out;
}

/// The part of an operand that a tile needs for 16 values of k: its way into shared memory.
template <int kTile>
struct Stage {
  static constexpr int kPitch = kTile + 4;  // spreads the columns over the banks
  static constexpr int kFloats = kProductDepth * kPitch;
  static constexpr int kVectors = kTile * kProductDepth / 4 / kProductThreads;

  Float4 fetched[kVectors];
  bool along_depth;

  /// Where vector v of this thread lies in the stage.
  ACCRUE_DEVICE int row(int v) const {  // of k
    const int q = thread_index() + v * kProductThreads;
    return along_depth ? q % (kProductDepth / 4) * 4 : q / (kTile / 4);
  }
  ACCRUE_DEVICE int column(int v) const {  // of i
    const int q = thread_index() + v * kProductThreads;
    return along_depth ? q / (kProductDepth / 4) : q % (kTile / 4) * 4;
  }

  ACCRUE_DEVICE void fetch(const Side& side,
                           std::int64_t offset,
                           const std::uint8_t* live,
                           std::int64_t first,
                           std::int64_t k,
                           std::int64_t end,
                           float padding) {
    ACCRUE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      fetched[v] =
          fetch4(side, offset, live, first + column(v), k + row(v), end, along_depth, padding);
    }
  }
  ACCRUE_DEVICE void put(float* stage) const {
    ACCRUE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      float* const out = stage + row(v) * kPitch + column(v);
      if (!along_depth) {
        store4(out, fetched[v]);
        continue;
      }
      ACCRUE_UNROLL
      for (int c = 0; c < 4; ++c) out[c * kPitch] = fetched[v].v[c];
    }
  }
};

/// A thread's elements of a tile: rows and columns come in groups of 4, 64 apart. Only with
/// kInBatch the product may be a batch or have a triangle, which costs registers.
template <int kTile, bool kInBatch>
struct ThreadTile {
  static constexpr int kSide = kTile / 16;

  const Product& product;
  const Slot* slots;
  std::int64_t offsets[3];  ///< of this product's a, b and slots
  float *a_stages, *b_stages;
  std::int64_t first_row, first_col;
  int row = thread_index() / 16 * 4, col = thread_index() % 16 * 4;
  float acc[kSide][kSide] = {};

  /// f(element, its place in the slot) for the elements that exist.
  template <class F>
  ACCRUE_DEVICE void visit(int slot, F f) {
    const Slot& it = slots[slot];
    ACCRUE_UNROLL
    for (int i = 0; i < kSide; ++i) {
      const std::int64_t r = first_row + row + i / 4 * 64 + i % 4;
      float* const line = it.data + (offsets[2] + r * it.row_stride);
      ACCRUE_UNROLL
      for (int j = 0; j < kSide; ++j) {
        const std::int64_t c = first_col + col + j / 4 * 64 + j % 4;
        if (r < product.a.count && c < product.b.count) f(acc[i][j], line + c);
      }
    }
  }
  template <class F>
  ACCRUE_DEVICE void each(F f) {
    ACCRUE_UNROLL
    for (int i = 0; i < kSide; ++i) {
      ACCRUE_UNROLL
      for (int j = 0; j < kSide; ++j) f(acc[i][j]);
    }
  }

  ACCRUE_DEVICE void zero() {
    each([](float& x) { x = 0.0f; });
  }
  ACCRUE_DEVICE void close() {
    each([](float& x) { x = x + 0.0f; });
  }
  ACCRUE_DEVICE void load(int slot) {
    visit(slot, [](float& x, const float* at) { x = *at; });
  }
  ACCRUE_DEVICE void merge(int slot) {
    visit(slot, [](float& x, const float* at) { x = *at + x; });
  }
  ACCRUE_DEVICE void store(int slot) {
    visit(slot, [](float& x, float* at) { *at = x; });
  }

  /// Whether all rows of the tile take all of [k, k + kProductDepth) into their chains.
  ACCRUE_DEVICE bool all_take(std::int64_t k) const {
    if (product.triangle == Triangle::upper) {
      return k + kProductDepth - 1 <= first_row + product.diagonal;
    }
    return product.triangle != Triangle::lower || k + product.diagonal >= first_row + kTile - 1;
  }

  /// fma(-0, +0, acc) is acc for every acc, so padding changes nothing.
  ACCRUE_DEVICE void chain(std::int64_t begin, std::int64_t end) {
    if constexpr (kInBatch) {  // what no row of the tile takes is not read
      const std::int64_t last = first_row + kTile + product.diagonal;
      const std::int64_t first = first_row - product.diagonal;
      if (product.triangle == Triangle::upper && last < end) end = last;
      if (product.triangle == Triangle::lower && first > begin) begin = first;
    }
    if (begin >= end) return;
    Stage<kTile> a{{}, product.a.depth_stride == 1}, b{{}, product.b.depth_stride == 1};
    const auto fetch = [&](std::int64_t k) {
      a.fetch(product.a, offsets[0], product.live, first_row, k, end, -0.0f);
      b.fetch(product.b, offsets[1], product.live, first_col, k, end, 0.0f);
    };
    const auto put = [&](int stage) {
      a.put(a_stages + stage * Stage<kTile>::kFloats);
      b.put(b_stages + stage * Stage<kTile>::kFloats);
    };
    fetch(begin);
    put(0);
    sync_block();
    int stage = 0;
    for (std::int64_t k = begin; k < end; k += kProductDepth) {
      const bool has_next = k + kProductDepth < end;
      if (has_next) fetch(k + kProductDepth);
      const int depth = static_cast<int>(has_next ? kProductDepth : end - k);
      if (!kInBatch || all_take(k)) {
        multiply(stage, depth);
      } else {
        multiply_triangle(stage, depth, k);
      }
      if (has_next) put(1 - stage);
      sync_block();
      stage = 1 - stage;
    }
  }

  /// One k in the chains of the rows i for which takes(i): elements of a from x on, of b from y on.
  template <class Takes>
  ACCRUE_DEVICE void multiply_at(const float* x, const float* y, Takes takes) {
    Float4 of_a[kSide / 4], of_b[kSide / 4];
    ACCRUE_UNROLL
    for (int g = 0; g < kSide / 4; ++g) {
      of_a[g] = load4(x + g * 64);
      of_b[g] = load4(y + g * 64);
    }
    ACCRUE_UNROLL
    for (int i = 0; i < kSide; ++i) {
      if (!takes(i)) continue;
      ACCRUE_UNROLL
      for (int j = 0; j < kSide; ++j) {
        acc[i][j] = scalar::fma(of_a[i / 4].v[i % 4], of_b[j / 4].v[j % 4], acc[i][j]);
      }
    }
  }
  ACCRUE_DEVICE void multiply(int stage, int depth) {
    const float* x = a_stages + stage * Stage<kTile>::kFloats + row;
    const float* y = b_stages + stage * Stage<kTile>::kFloats + col;
    ACCRUE_UNROLL_BY(4)
    for (int k = 0; k < depth; ++k, x += Stage<kTile>::kPitch, y += Stage<kTile>::kPitch) {
      multiply_at(x, y, [](int) { return true; });
    }
  }
  /// The same where a stage that begins at `first` crosses the diagonal.
  ACCRUE_DEVICE void multiply_triangle(int stage, int depth, std::int64_t first) {
    const bool is_upper = product.triangle == Triangle::upper;
    const std::int64_t shift = is_upper ? product.diagonal : -product.diagonal;
    const int place = static_cast<int>(first_row + row + shift - first);
    const float* x = a_stages + stage * Stage<kTile>::kFloats + row;
    const float* y = b_stages + stage * Stage<kTile>::kFloats + col;
    ACCRUE_NO_UNROLL
    for (int k = 0; k < depth; ++k, x += Stage<kTile>::kPitch, y += Stage<kTile>::kPitch) {
      multiply_at(x, y, [=](int i) {
        const int diagonal = place + i / 4 * 64 + i % 4;
        return is_upper ? k <= diagonal : k >= diagonal;
      });
    }
  }
};

template <int kTile, bool kInBatch>
ACCRUE_KERNEL(kProductThreads)
void product_kernel(ACCRUE_PARAMETER Product product, int line) {
  ACCRUE_SHARED(float, a_stages, 2 * Stage<kTile>::kFloats);
  ACCRUE_SHARED(float, b_stages, 2 * Stage<kTile>::kFloats);
  const LaneInstruction* const program =
      product.instructions != nullptr ? product.instructions : product.few;
  ThreadTile<kTile, kInBatch> tile{
      .product = product,
      .slots = product.slots != nullptr ? product.slots : product.few_slots,
      .offsets = {},
      .a_stages = a_stages,
      .b_stages = b_stages,
      .first_row = std::int64_t{block_x()} * kTile,
      .first_col = std::int64_t{block_y()} * kTile};
  if constexpr (kInBatch) {
    const int at = block_x() % line;
    tile.first_row = std::int64_t{at} * kTile;
    tile.first_col = std::int64_t{block_x() / line} * kTile;
    if (product.offsets != nullptr) {
      const int tiles = static_cast<int>((product.a.count + kTile - 1) / kTile);
      for (int n = 0; n < 3; ++n) tile.offsets[n] = product.offsets[at / tiles][n];
      tile.first_row = std::int64_t{at % tiles} * kTile;
    }
    const std::int64_t last = tile.first_row + kTile - 1 + product.diagonal;
    if (product.triangle == Triangle::upper_outputs && tile.first_col > last) return;
  }
  interpret(program, program + product.num_instructions, tile);
}

}  // namespace accrue::kernels::cuda
