// One thread's share of a matrix product: the blocked loops over tiles, and the plain loop.
//
// Tiles follow BLIS: a block of b is packed into strips of 16 columns, a block of a into strips of
// 6 or 12 rows, and every tile runs the block's instructions with its accumulators in registers. An
// accumulator that lives across blocks is stored and loaded by the program itself.
#include "accrue/kernels/cpu/gemm.h"
#include "accrue/kernels/cpu/gemm_pack.h"
#include "accrue/kernels/cpu/gemm_tile.h"

#include <array>
#include <utility>

namespace accrue::kernels::ACCRUE_ISA {
namespace {

constexpr std::int64_t kBlockRows = 96;     // of a: with the deepest block of k 400 KiB, for L2
constexpr std::int64_t kBlockCols = 1536;   // of b: for L3
constexpr std::int64_t kScratchCols = 768;  // likewise, where scratch crosses blocks of k
constexpr std::int64_t kScratch = 2 << 20;  // floats of such scratch
constexpr std::int64_t kInPlace = 3 << 12;  // floats: most of L1
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
  cut.scratch_size = std::int64_t{program.num_scratch} * kTileSize;
  const bool crosses = program.blocks.size() > 1 && program.num_scratch > 0;
  if (crosses) cut.cols = least(cut.cols, kScratchCols);
  const std::int64_t col_tiles = ceil_div(cut.cols, kTileCols);
  if (crosses) {
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
using TileFunctions = std::array<TileFunction, kTileRows>;

template <int kRows, int kVecs>
void run_tile(const TileArgs& args, std::span<const GemmStep> steps) {
  GemmTile<kRows, kVecs>{args, {}, {}}.run(steps);
}

template <int kVecs, int... kBefore>
constexpr TileFunctions tiles(std::integer_sequence<int, kBefore...>) {
  return {run_tile<kBefore + 1, kVecs>...};
}

template <int kVecs>
constexpr TileFunctions kTiles = tiles<kVecs>(std::make_integer_sequence<int, kTileRows>());

TileFunction tile_function(std::int64_t rows, std::int64_t cols) {
  return (cols > kTileVecSize ? kTiles<kTileVecs> : kTiles<1>)[std::size_t(rows - 1)];
}

/// One block of a product: its outputs, and where its operands are packed. Null: read in place.
struct BlockRun {
  const Gemm<float>& gemm;
  const GemmBlock& block;
  Rectangle part;
  float *packed_a, *packed_b;

  std::int64_t depth() const { return block.end - block.begin; }
  const float* a(std::int64_t row) const {
    return gemm.a.data + row * gemm.a.row_stride + block.begin * gemm.a.col_stride;
  }
  const float* b(std::int64_t col) const {
    return gemm.b.data + block.begin * gemm.b.row_stride + col * gemm.b.col_stride;
  }
};

/// Whether to leave an operand where it lies: few tiles reuse it, and its rows of k are near.
bool in_place(std::int64_t reuses, std::int64_t most_reuses, std::int64_t extent) {
  return reuses <= most_reuses && extent <= kInPlace && extent >= -kInPlace;
}

bool in_place_a(const BlockRun& run) {
  const std::int64_t cols = run.part.col_end - run.part.col_begin;
  return in_place(cols, 256, run.gemm.a.col_stride * run.depth());
}

bool in_place_b(const BlockRun& run) {
  const std::int64_t rows = run.part.row_end - run.part.row_begin;
  const std::int64_t cols = run.part.col_end - run.part.col_begin;
  return run.gemm.b.col_stride == 1 && cols % kTileCols == 0 &&
         in_place(rows, 96, run.gemm.b.row_stride * run.depth());
}

void pack_b(const BlockRun& run) {
  const auto& b = run.gemm.b;
  float* to = run.packed_b;
  for (std::int64_t col = run.part.col_begin; col < run.part.col_end; col += kTileCols) {
    const int width = static_cast<int>(least(kTileCols, run.part.col_end - col));
    pack({run.b(col), b.row_stride, b.col_stride, run.depth(), width}, kTileCols, to);
    to += run.depth() * kTileCols;
  }
}

void pack_a(const BlockRun& run) {
  const auto& a = run.gemm.a;
  float* to = run.packed_a;
  for (std::int64_t row = run.part.row_begin; row < run.part.row_end; row += kTileRows) {
    const int width = static_cast<int>(least(kTileRows, run.part.row_end - row));
    pack({run.a(row), a.col_stride, a.row_stride, run.depth(), width}, width, to);
    to += run.depth() * width;
  }
}

/// Runs the block's steps on its tiles, whose operands are packed or in place. The scratch of one
/// tile lies `scratch_step` behind that of the last.
void run_tiles(const BlockRun& run, float* scratch, std::int64_t scratch_step) {
  const auto& [gemm, block, part, packed_a, packed_b] = run;
  TileArgs args;
  args.buffers = gemm.buffers.data();
  args.num_buffers = static_cast<std::int64_t>(gemm.buffers.size());
  args.scratch = scratch;
  args.b_k = packed_b ? kTileCols : gemm.b.row_stride;
  args.a_row = packed_a ? 1 : gemm.a.row_stride;
  for (args.col = part.col_begin; args.col < part.col_end; args.col += kTileCols) {
    args.cols = static_cast<int>(least(kTileCols, part.col_end - args.col));
    args.b = packed_b ? packed_b + (args.col - part.col_begin) * run.depth() : run.b(args.col);
    for (args.row = part.row_begin; args.row < part.row_end; args.row += kTileRows) {
      args.rows = static_cast<int>(least(kTileRows, part.row_end - args.row));
      args.a = packed_a ? packed_a + (args.row - part.row_begin) * run.depth() : run.a(args.row);
      args.a_k = packed_a ? args.rows : gemm.a.col_stride;
      tile_function(args.rows, args.cols)(args, block.steps);
      args.scratch += scratch_step;
    }
  }
}

/// Runs the block on its rows, kBlockRows at a time, each on its own part of scratch.
void run_rows(BlockRun& run, float* scratch, std::int64_t scratch_step) {
  const std::int64_t row_end = run.part.row_end;
  const std::int64_t col_tiles = ceil_div(run.part.col_end - run.part.col_begin, kTileCols);
  while (run.part.row_begin < row_end) {
    run.part.row_end = least(run.part.row_begin + kBlockRows, row_end);
    if (run.packed_a) pack_a(run);
    run_tiles(run, scratch, scratch_step);
    scratch +=
        scratch_step * col_tiles * ceil_div(run.part.row_end - run.part.row_begin, kTileRows);
    run.part.row_begin = run.part.row_end;
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
    for (std::int64_t row = part.row_begin; row < part.row_end; row += cut.rows) {
      const std::int64_t row_end = least(row + cut.rows, part.row_end);
      for (const auto& block : program.blocks) {
        BlockRun run{gemm, block, {row, row_end, col, col_end}, packed_a, packed_b};
        if (in_place_a(run)) run.packed_a = nullptr;
        if (in_place_b(run)) run.packed_b = nullptr;
        if (run.packed_b) pack_b(run);
        run_rows(run, scratch, step);
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
