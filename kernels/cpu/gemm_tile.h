// GemmTile: up to 6 x 16 outputs in registers, running a lane program. Only for ISA_SOURCES.
#pragma once

#include "accrue/kernels/cpu/gemm.h"
#include "accrue/kernels/cpu/vec.h"

namespace accrue::kernels::ACCRUE_ISA {

inline constexpr int kTileRows = 6;
inline constexpr int kTileCols = 2 * kVecSize;
inline constexpr int kTileSize = kTileRows * kTileCols;

/// What a tile reads besides its registers.
struct TileArgs {
  const float* a = nullptr;  ///< element (row, k) at a[row * a_row + k * a_k]
  std::int64_t a_row = 0, a_k = 0;
  const float* b = nullptr;  ///< kTileCols elements of k from b + k * b_k on
  std::int64_t b_k = 0;
  const GemmSlot<float>* buffers = nullptr;
  std::int64_t num_buffers = 0;
  std::int64_t row = 0, col = 0;  ///< the tile's first output
  int cols = kTileCols;           ///< outputs per row: the rest is computed, never stored
  float* scratch = nullptr;       ///< kTileSize floats per scratch slot
};

/// kRows x (kVecs * 8) accumulators. 12 accumulators, 2 vectors of b and a broadcast of a fill the
/// 16 registers of AVX2.
template <int kRows, int kVecs>
struct GemmTile {
  const TileArgs& args;
  Vec acc[kRows][kVecs];

  ACCRUE_INLINE void zero() {
    each([](Vec& value, int, int) { value = broadcast(0.0f); });
  }

  ACCRUE_INLINE void close() {
    each([](Vec& value, int, int) { value = value + broadcast(0.0f); });
  }

  ACCRUE_INLINE void load(std::int32_t slot) {
    read(slot, [](Vec& value, Vec stored) { value = stored; });
  }

  ACCRUE_INLINE void merge(std::int32_t slot) {
    read(slot, [](Vec& value, Vec stored) { value = stored + value; });
  }

  ACCRUE_INLINE void store(std::int32_t slot) {
    const Place to = locate(slot);
    if (to.last == kVecSize) {
      each([&](Vec& value, int r, int v) { ACCRUE_ISA::store(to.at(r, v), value); });
    } else {
      each([&](Vec& value, int r, int v) {
        store_partial(to.at(r, v), value, v < kVecs - 1 ? kVecSize : to.last);
      });
    }
  }

  ACCRUE_INLINE void chain(std::int64_t begin, std::int64_t end) {
    const float* a0 = args.a + begin * args.a_k;  // rows 0 to 2
    const float* a3 = a0 + 3 * args.a_row;        // rows 3 to 5: two bases reach all six by index
    const float* b = args.b + begin * args.b_k;
    for (std::int64_t k = begin; k < end; ++k) {
      Vec bk[kVecs];
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v) bk[v] = ACCRUE_ISA::load(b + v * kVecSize);
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        const Vec ak = broadcast(r < 3 ? a0[r * args.a_row] : a3[(r - 3) * args.a_row]);
#pragma GCC unroll 2
        for (int v = 0; v < kVecs; ++v) acc[r][v] = fma(ak, bk[v], acc[r][v]);
      }
      a0 += args.a_k;
      a3 += args.a_k;
      b += args.b_k;
    }
  }

  /// A slot's values for this tile.
  struct Place {
    float* data;
    std::int64_t stride;
    int last;  // columns present in the last Vec of a row
    ACCRUE_INLINE float* at(int r, int v) const { return data + r * stride + v * kVecSize; }
  };

  ACCRUE_INLINE Place locate(std::int32_t slot) const {
    if (slot >= args.num_buffers)
      return {args.scratch + (slot - args.num_buffers) * kTileSize, kTileCols, kVecSize};
    const auto& buffer = args.buffers[slot];
    return {buffer.data + args.row * buffer.row_stride + args.col,
            buffer.row_stride,
            args.cols - (kVecs - 1) * kVecSize};
  }

  template <class Action>
  ACCRUE_INLINE void read(std::int32_t slot, const Action& action) {
    const Place from = locate(slot);
    if (from.last == kVecSize) {
      each([&](Vec& value, int r, int v) { action(value, ACCRUE_ISA::load(from.at(r, v))); });
    } else {
      each([&](Vec& value, int r, int v) {
        action(value, load_partial(from.at(r, v), v < kVecs - 1 ? kVecSize : from.last));
      });
    }
  }

  template <class Action>
  ACCRUE_INLINE void each(const Action& action) {
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v) action(acc[r][v], r, v);
    }
  }
};

}  // namespace accrue::kernels::ACCRUE_ISA
