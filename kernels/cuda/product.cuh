// The product kernel: each output element runs a lane program over the summed index k.
//
// A block of 256 threads computes a square tile of outputs; a thread holds its elements in
// registers. For a chain, 16 values of k at a time pass through shared memory, two stages in turn:
// while one is multiplied, the next is on its way. The bits do not depend on the tile.
#pragma once

#include "accrue/kernels/cuda/platform.h"
#include "accrue/kernels/lane_program.h"
#include "accrue/kernels/scalar/float_ops.h"

namespace accrue::kernels::cuda {

inline constexpr int kProductThreads = 256, kProductDepth = 16;

/// An operand: element (i, k), where i is an output's row or column. Null data stands for ones.
struct Side {
  const float* data = nullptr;
  std::int64_t count = 0;  ///< of i
  std::int64_t stride = 0, depth_stride = 0;
};

/// A slot of the program: an [a.count, b.count] matrix; a bias has row_stride 0.
struct Slot {
  float* data = nullptr;
  std::int64_t row_stride = 0;
};

struct Product {
  static constexpr int kFewInstructions = 4, kFewSlots = 2;

  Side a, b;
  const std::uint8_t* live = nullptr;             ///< unless null a byte for each k: chains skip 0
  const LaneInstruction* instructions = nullptr;  ///< in device memory, or null: `few`
  const Slot* slots = nullptr;                    ///< in device memory, or null: `few_slots`
  int num_instructions = 0;
  LaneInstruction few[kFewInstructions] = {};
  Slot few_slots[kFewSlots] = {};
};

/// Four elements of an operand: consecutive k of one i (`along_depth`) or consecutive i of one k.
/// What lies outside, or at a dead k, is `padding`.
ACCRUE_DEVICE Float4 fetch4(const Side& side,
                            const std::uint8_t* live,
                            std::int64_t i,
                            std::int64_t k,
                            std::int64_t end,
                            bool along_depth,
                            float padding) {
  const std::int64_t stride = along_depth ? side.depth_stride : side.stride;
  const std::int64_t room = along_depth ? end - k : side.count - i;
  const bool is_inside = along_depth ? i < side.count : k < end;
  const float* const p = side.data + (i * side.stride + k * side.depth_stride);
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
                           const std::uint8_t* live,
                           std::int64_t first,
                           std::int64_t k,
                           std::int64_t end,
                           float padding) {
    ACCRUE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      fetched[v] = fetch4(side, live, first + column(v), k + row(v), end, along_depth, padding);
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

/// A thread's elements of a tile: rows and columns come in groups of 4, 64 apart.
template <int kTile>
struct ThreadTile {
  static constexpr int kSide = kTile / 16;

  const Product& product;
  const Slot* slots;
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
      float* const line = it.data + r * it.row_stride;
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

  /// fma(-0, +0, acc) is acc for every acc, so padding changes nothing.
  ACCRUE_DEVICE void chain(std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    Stage<kTile> a{{}, product.a.depth_stride == 1}, b{{}, product.b.depth_stride == 1};
    const auto fetch = [&](std::int64_t k) {
      a.fetch(product.a, product.live, first_row, k, end, -0.0f);
      b.fetch(product.b, product.live, first_col, k, end, 0.0f);
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
      multiply(stage, static_cast<int>(has_next ? kProductDepth : end - k));
      if (has_next) put(1 - stage);
      sync_block();
      stage = 1 - stage;
    }
  }

  ACCRUE_DEVICE void multiply(int stage, int depth) {
    const float* a = a_stages + stage * Stage<kTile>::kFloats + row;
    const float* b = b_stages + stage * Stage<kTile>::kFloats + col;
    ACCRUE_UNROLL_BY4
    for (int k = 0; k < depth; ++k, a += Stage<kTile>::kPitch, b += Stage<kTile>::kPitch) {
      Float4 x[kSide / 4], y[kSide / 4];
      ACCRUE_UNROLL
      for (int g = 0; g < kSide / 4; ++g) {
        x[g] = load4(a + g * 64);
        y[g] = load4(b + g * 64);
      }
      ACCRUE_UNROLL
      for (int i = 0; i < kSide; ++i) {
        ACCRUE_UNROLL
        for (int j = 0; j < kSide; ++j) {
          acc[i][j] = scalar::fma(x[i / 4].v[i % 4], y[j / 4].v[j % 4], acc[i][j]);
        }
      }
    }
  }
};

template <int kTile>
ACCRUE_KERNEL(kProductThreads)
void product_kernel(ACCRUE_PARAMETER Product product) {
  ACCRUE_SHARED(float, a_stages, 2 * Stage<kTile>::kFloats);
  ACCRUE_SHARED(float, b_stages, 2 * Stage<kTile>::kFloats);
  const LaneInstruction* const program =
      product.instructions != nullptr ? product.instructions : product.few;
  ThreadTile<kTile> tile{.product = product,
                         .slots = product.slots != nullptr ? product.slots : product.few_slots,
                         .a_stages = a_stages,
                         .b_stages = b_stages,
                         .first_row = std::int64_t{block_x()} * kTile,
                         .first_col = std::int64_t{block_y()} * kTile};
  interpret(program, program + product.num_instructions, tile);
}

}  // namespace accrue::kernels::cuda
