// One thread's share of a matrix product: the blocked loops over tiles, and the plain loop.
//
// Tiles follow BLIS: a block of b is packed into strips of 16 columns, a block of a into strips of
// 6 rows, and every tile runs the block's instructions with its accumulators in registers. An
// accumulator that lives across blocks is stored and loaded by the program itself.
#include "accrue/kernels/cpu/gemm.h"
#include "accrue/kernels/cpu/gemm_pack.h"
#include "accrue/kernels/cpu/gemm_tile.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

constexpr std::int64_t kBlockRows = 96;     // of a: with k blocks of 256 half of a small L2
constexpr std::int64_t kBlockCols = 768;    // of b
constexpr std::int64_t kScratch = 1 << 20;  // floats of tile scratch that cross blocks of k
constexpr std::int64_t kSlack = 16;         // floats that packing touches past a block

std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
std::int64_t most(std::int64_t a, std::int64_t b) { return a > b ? a : b; }
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// How a share is cut, and where its parts lie in the workspace.
struct Cut {
  std::int64_t rows, cols;  // that share one packed block of b: bounded by the scratch they need
  std::int64_t depth;       // the longest block of k
  std::int64_t b_size, a_size, scratch_size;
};

Cut cut_of(const GemmBlocks& program, const Rectangle& part) {
  Cut cut{};
  cut.rows = part.row_end - part.row_begin;
  cut.cols = least(part.col_end - part.col_begin, kBlockCols);
  for (const auto& block : program.blocks) cut.depth = most(cut.depth, block.end - block.begin);
  const std::int64_t col_tiles = ceil_div(cut.cols, kTileCols);
  cut.scratch_size = program.num_scratch * kTileSize;
  if (program.blocks.size() > 1 && program.num_scratch > 0) {
    const std::int64_t row_of_tiles = cut.scratch_size * col_tiles;
    const std::int64_t fit = most(kScratch / row_of_tiles * kTileRows / kBlockRows, 1);
    cut.rows = least(cut.rows, fit * kBlockRows);
    cut.scratch_size = row_of_tiles * ceil_div(cut.rows, kTileRows);
  }
  cut.b_size = cut.depth * col_tiles * kTileCols;
  cut.a_size = least(cut.rows, kBlockRows) * cut.depth + kSlack;
  return cut;
}

using TileFunction = void (*)(const TileArgs&, std::span<const GemmStep>);

template <int kRows, int kVecs>
void run_tile(const TileArgs& args, std::span<const GemmStep> steps) {
  GemmTile<kRows, kVecs>{args, {}}.run(steps);
}

template <int kVecs>
constexpr TileFunction kTiles[kTileRows] = {run_tile<1, kVecs>,
                                            run_tile<2, kVecs>,
                                            run_tile<3, kVecs>,
                                            run_tile<4, kVecs>,
                                            run_tile<5, kVecs>,
                                            run_tile<6, kVecs>};

TileFunction tile_function(std::int64_t rows, std::int64_t cols) {
  return (cols > kTileVecSize ? kTiles<kTileVecs> : kTiles<1>)[rows - 1];
}

/// Packs the columns [begin, end) of a block of b into strips of kTileCols.
void pack_b(const Gemm<float>& gemm,
            const GemmBlock& block,
            std::int64_t begin,
            std::int64_t end,
            float* to) {
  const auto& b = gemm.b;
  const std::int64_t depth = block.end - block.begin;
  for (std::int64_t col = begin; col < end; col += kTileCols) {
    const int width = static_cast<int>(least(kTileCols, end - col));
    const float* from = b.data + block.begin * b.row_stride + col * b.col_stride;
    pack({from, b.row_stride, b.col_stride, depth, width}, kTileCols, to);
    to += depth * kTileCols;
  }
}

/// Packs the rows [begin, end) of a block of a into strips of kTileRows.
void pack_a(const Gemm<float>& gemm,
            const GemmBlock& block,
            std::int64_t begin,
            std::int64_t end,
            float* to) {
  const auto& a = gemm.a;
  const std::int64_t depth = block.end - block.begin;
  for (std::int64_t row = begin; row < end; row += kTileRows) {
    const int width = static_cast<int>(least(kTileRows, end - row));
    const float* from = a.data + row * a.row_stride + block.begin * a.col_stride;
    pack({from, a.col_stride, a.row_stride, depth, width}, width, to);
    to += depth * width;
  }
}

/// Runs a block's instructions on the tiles of `part`, whose a and b are packed.
void run_tiles(const Gemm<float>& gemm,
               const GemmBlock& block,
               const Rectangle& part,
               const float* a,
               const float* b,
               float* scratch,
               std::int64_t scratch_step) {
  const std::int64_t depth = block.end - block.begin;
  TileArgs args;
  args.buffers = gemm.buffers.data();
  args.num_buffers = static_cast<std::int64_t>(gemm.buffers.size());
  args.b = b;
  args.scratch = scratch;
  for (args.col = part.col_begin; args.col < part.col_end; args.col += kTileCols) {
    args.cols = static_cast<int>(least(kTileCols, part.col_end - args.col));
    args.a = a;
    for (args.row = part.row_begin; args.row < part.row_end; args.row += kTileRows) {
      const std::int64_t rows = least(kTileRows, part.row_end - args.row);
      args.rows = static_cast<int>(rows);
      tile_function(rows, args.cols)(args, block.steps);
      args.a += depth * rows;
      args.scratch += scratch_step;
    }
    args.b += depth * kTileCols;
  }
}

}  // namespace

std::int64_t gemm_workspace(const GemmBlocks& program, const Rectangle& part) {
  const Cut cut = cut_of(program, part);
  return cut.b_size + cut.a_size + cut.scratch_size;
}

void gemm_tiles(const Gemm<float>& gemm,
                const GemmBlocks& program,
                const Rectangle& part,
                float* workspace) {
  const Cut cut = cut_of(program, part);
  float* const packed_b = workspace;
  float* const scratch = packed_b + cut.b_size;
  float* const packed_a = scratch + cut.scratch_size;
  const std::int64_t step = program.blocks.size() > 1 ? program.num_scratch * kTileSize : 0;
  for (std::int64_t col = part.col_begin; col < part.col_end; col += cut.cols) {
    const std::int64_t col_end = least(col + cut.cols, part.col_end);
    const std::int64_t col_tiles = ceil_div(col_end - col, kTileCols);
    for (std::int64_t row = part.row_begin; row < part.row_end; row += cut.rows) {
      const std::int64_t row_end = least(row + cut.rows, part.row_end);
      for (const auto& block : program.blocks) {
        pack_b(gemm, block, col, col_end, packed_b);
        float* tiles = scratch;
        for (std::int64_t i = row; i < row_end; i += kBlockRows) {
          const std::int64_t end = least(i + kBlockRows, row_end);
          pack_a(gemm, block, i, end, packed_a);
          run_tiles(gemm, block, {i, end, col, col_end}, packed_a, packed_b, tiles, step);
          tiles += step * col_tiles * ceil_div(end - i, kTileRows);
        }
      }
    }
  }
}

namespace {

/// One output of the plain loop.
template <class T>
struct Element {
  const Gemm<T>& gemm;
  std::int64_t row, col;
  T acc;
  T* scratch;

  ACCRUE_INLINE T& at(std::int32_t slot) {
    const auto buffers = static_cast<std::int32_t>(gemm.buffers.size());
    if (slot >= buffers) return scratch[slot - buffers];
    const auto& buffer = gemm.buffers[static_cast<std::size_t>(slot)];
    return buffer.data[row * buffer.row_stride + col];
  }
  ACCRUE_INLINE void zero() { acc = 0; }
  ACCRUE_INLINE void load(std::int32_t slot) { acc = at(slot); }
  ACCRUE_INLINE void close() { acc = acc + T(0); }
  ACCRUE_INLINE void merge(std::int32_t slot) { acc = at(slot) + acc; }
  ACCRUE_INLINE void store(std::int32_t slot) { at(slot) = acc; }
  ACCRUE_INLINE void chain(std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      if (gemm.live && !gemm.live[k]) continue;
      acc = fma(gemm.a(row, k), gemm.b(k, col), acc);
    }
  }
  static ACCRUE_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static ACCRUE_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
};

template <class T>
void run_elements(const Gemm<T>& gemm) {
  const auto& instructions = gemm.program.instructions;
  const LaneInstruction* const first = instructions.data();
  T scratch[kMaxLaneScratch];
  for (std::int64_t row = 0; row < gemm.a.rows; ++row) {
    for (std::int64_t col = 0; col < gemm.b.cols; ++col) {
      Element<T> element{gemm, row, col, T(0), scratch};
      interpret(first, first + instructions.size(), element);
    }
  }
}

}  // namespace

void gemm_elements(const Gemm<float>& gemm) { run_elements(gemm); }
void gemm_elements(const Gemm<double>& gemm) { run_elements(gemm); }

}  // namespace accrue::kernels::ACCRUE_ISA
