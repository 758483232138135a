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

/// Where one vector of a tile lies in memory.
struct Whole {
  float* at;
  ACCRUE_INLINE TileVec get() const { return load<TileVec>(at); }
  ACCRUE_INLINE void put(TileVec value) const { store(at, value); }
};
/// The same where only `count` floats lie there; may be <= 0.
struct Part {
  float* at;
  int count;
  ACCRUE_INLINE TileVec get() const { return load_partial<TileVec>(at, count); }
  ACCRUE_INLINE void put(TileVec value) const { store_partial(at, value, count); }
};

/// kRows x kVecs accumulators. With AVX2 12 accumulators, 2 vectors of b and a broadcast of a fill
/// the 16 registers. With AVX-512 12 are one vector wide: enough work in flight to hide the stores
/// and sums of short lanes, and room for the sum of one lane while the next one's is made.
template <int kRows, int kVecs>
struct GemmTile {
  const TileArgs& args;
  TileVec acc[kRows][kVecs], held[kRows][kVecs];

  ACCRUE_INLINE void run(std::span<const GemmStep> steps) {
    for (const GemmStep& step : steps) {
      if (step.start == GemmStep::Start::zero) {
        each([](TileVec& value, int, int) { value = broadcast<TileVec>(0.0f); });
      } else if (step.start == GemmStep::Start::load) {
        visit(step.load, [](TileVec& value, auto place) { value = place.get(); });
      }
      chain(step.begin, step.end);
      if (step.closes) each([](TileVec& value, int, int) { value += broadcast<TileVec>(0.0f); });
      if (step.merges_held)
        each([this](TileVec& value, int r, int v) { value = held[r][v] + value; });
      for (int i = 0; i < step.num_merges; ++i) {
        visit(step.merges[i], [](TileVec& value, auto place) { value = place.get() + value; });
      }
      if (step.holds) each([this](TileVec& value, int r, int v) { held[r][v] = value; });
      if (step.store >= 0) visit(step.store, [](TileVec& value, auto place) { place.put(value); });
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

  /// Calls action(acc, its place in the slot) for every accumulator.
  template <class Action>
  ACCRUE_INLINE void visit(std::int32_t slot, const Action& action) {
    if (slot >= args.num_buffers) {  // apart from buffers: constant offsets save instructions
      float* const at = args.scratch + (slot - args.num_buffers) * kTileSize;
      each([&](TileVec& value, int r, int v) {
        action(value, Whole{at + r * kTileCols + v * kTileVecSize});
      });
      return;
    }
    const std::int64_t stride = args.buffers[slot].row_stride;
    float* at = args.buffers[slot].data + args.row * stride + args.col;
    const bool whole = args.cols == kVecs * kTileVecSize;
    const auto walk = [&](auto place_of) {
      each([&](TileVec& value, int, int v) {
        action(value, place_of(at + v * kTileVecSize, v));
        if (v == kVecs - 1) at += stride;
      });
    };
    if (whole) return walk([](float* p, int) { return Whole{p}; });
    walk([&](float* p, int v) { return Part{p, args.cols - v * kTileVecSize}; });
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
