// GemmTile: up to 6 x 16 outputs in registers (AVX-512: 12 x 16), running the steps of a lane
// program.
#pragma once

#include "accrue/kernels/cpu/gemm.h"
#include "accrue/kernels/cpu/vec.h"

namespace accrue::kernels::ACCRUE_ISA {

inline constexpr int kTileRows = sizeof(TileVec) == 64 ? 12 : 6;
inline constexpr int kTileCols = 16;
inline constexpr int kTileVecs = kTileCols / kTileVecSize;
inline constexpr int kTileSize = kTileRows * kTileCols;

/// What a tile reads besides its registers.
struct TileArgs {
  const float* a = nullptr;  ///< element (row, k) at a[row * a_row + k * a_k]
  std::int64_t a_row = 1, a_k = kTileRows;
  const float* b = nullptr;  ///< kTileCols elements of k from b + k * b_k on
  std::int64_t b_k = kTileCols;
  const GemmSlot<float>* buffers = nullptr;
  std::int64_t num_buffers = 0;
  std::int64_t row = 0, col = 0;  ///< the tile's first output
  int rows = kTileRows;
  int cols = kTileCols;      ///< outputs per row: the rest is computed, never stored
  float* scratch = nullptr;  ///< kTileSize floats per scratch slot
};

/// A tile's part of a buffer.
struct TilePart {
  float* data;
  std::int64_t stride;
  int rows, cols;
};

// Not inlined: full tiles, which matter, then keep their registers. Static: no weak symbol is left.
static __attribute__((noinline)) void copy_to(const TilePart& part, float* tile) {
  for (int r = 0; r < part.rows; ++r)
    for (int c = 0; c < part.cols; ++c) tile[r * kTileCols + c] = part.data[r * part.stride + c];
}
static __attribute__((noinline)) void copy_from(const TilePart& part, const float* tile) {
  for (int r = 0; r < part.rows; ++r)
    for (int c = 0; c < part.cols; ++c) part.data[r * part.stride + c] = tile[r * kTileCols + c];
}

/// kRows x kVecs accumulators. With AVX2 12 accumulators, 2 vectors of b and a broadcast of a fill
/// the 16 registers. With AVX-512 12 are one vector wide: enough work in flight to hide the stores
/// and sums of short lanes.
template <int kRows, int kVecs>
struct GemmTile {
  const TileArgs& args;
  TileVec acc[kRows][kVecs];

  ACCRUE_INLINE void run(std::span<const GemmStep> steps) {
    for (const GemmStep& step : steps) {
      if (step.start == GemmStep::Start::zero) {
        each([](TileVec& value, int, int) { value = broadcast<TileVec>(0.0f); });
      } else if (step.start == GemmStep::Start::load) {
        visit(step.load, false, [](TileVec& value, float* at) { value = load<TileVec>(at); });
      }
      chain(step.begin, step.end);
      if (step.closes) each([](TileVec& value, int, int) { value += broadcast<TileVec>(0.0f); });
      for (int i = 0; i < step.num_merges; ++i) {
        visit(step.merges[i], false, [](TileVec& value, float* at) {
          value = load<TileVec>(at) + value;
        });
      }
      if (step.store >= 0)
        visit(step.store, true, [](TileVec& value, float* at) { store(at, value); });
    }
  }

  ACCRUE_INLINE void chain(std::int64_t begin, std::int64_t end) {
    constexpr int kBases = (kRows + 2) / 3;  // each reaches three rows by index
    const float* a[kBases];
#pragma GCC unroll 4
    for (int i = 0; i < kBases; ++i) a[i] = args.a + begin * args.a_k + 3 * i * args.a_row;
    const float* b = args.b + begin * args.b_k;
    for (std::int64_t k = end - begin; k > 0; --k) {
      TileVec bk[kVecs];
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v) bk[v] = load<TileVec>(b + v * kTileVecSize);
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        const TileVec ak = broadcast<TileVec>(a[r / 3][r % 3 * args.a_row]);
#pragma GCC unroll 2
        for (int v = 0; v < kVecs; ++v) acc[r][v] = fma(ak, bk[v], acc[r][v]);
      }
#pragma GCC unroll 4
      for (int i = 0; i < kBases; ++i) a[i] += args.a_k;
      b += args.b_k;
    }
  }

  /// Calls action(acc, place in the slot) for every accumulator. A buffer that has fewer columns
  /// than the tile is read and written by way of a whole tile.
  template <class Action>
  ACCRUE_INLINE void visit(std::int32_t slot, bool writes, const Action& action) {
    if (slot >= args.num_buffers) {  // apart from buffers: constant offsets save instructions
      float* const at = args.scratch + (slot - args.num_buffers) * kTileSize;
      each([&](TileVec& value, int r, int v) {
        action(value, at + r * kTileCols + v * kTileVecSize);
      });
      return;
    }
    const std::int64_t stride = args.buffers[slot].row_stride;
    float* at = args.buffers[slot].data + args.row * stride + args.col;
    if (args.cols == kVecs * kTileVecSize) {
      each([&](TileVec& value, int, int v) {
        action(value, at + v * kTileVecSize);
        if (v == kVecs - 1) at += stride;
      });
    } else {
      float tile[kTileSize];
      const TilePart part{at, stride, kRows, args.cols};
      if (!writes) copy_to(part, tile);
      each([&](TileVec& value, int r, int v) {
        action(value, tile + r * kTileCols + v * kTileVecSize);
      });
      if (writes) copy_from(part, tile);
    }
  }

  template <class Action>
  ACCRUE_INLINE void each(const Action& action) {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v) action(acc[r][v], r, v);
    }
  }
};

}  // namespace accrue::kernels::ACCRUE_ISA
