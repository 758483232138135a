// gemm(): cuts a program at blocks of k and the outputs into one rectangle per thread.
#include "accrue/kernels/cpu/gemm.h"

#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/parallel.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

namespace accrue::kernels {
namespace {

constexpr std::int64_t kMaxDepth = 256;     // of a block: 16 columns of b then fill half of L1
constexpr double kElementWork = 256;        // products up to which the plain loop wins
constexpr double kThreadWork = 128 * 1024;  // products that are worth waking a thread
constexpr std::int64_t kTileRows = 6, kTileCols = 16;  // rectangles end at whole tiles

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// A program cut at block borders and at dead rows. At a border acc is stored and loaded again.
class CutProgram {
 public:
  void cut(const LaneProgram& program, const std::uint8_t* live, std::int64_t depth) {
    instructions_.clear();
    starts_.assign(1, 0);
    blocks_.assign(1, {});
    num_scratch_ = program.num_scratch;
    for (std::size_t i = 0; i < program.instructions.size(); ++i) {
      const auto& instruction = program.instructions[i];
      if (instruction.op != LaneOp::chain) {
        instructions_.push_back(instruction);
        continue;
      }
      for (std::int64_t row = instruction.begin; row < instruction.end;) {
        const std::int64_t block = row / depth * depth;
        std::int64_t end = std::min(instruction.end, block + depth);
        if (live) end = std::find(live + row, live + end, std::uint8_t{0}) - live;
        if (row < end) {
          enter(block, end, program, i + 1);
          instructions_.push_back(LaneInstruction::chain(row - block, end - block));
        }
        row = end;
        if (live) row = std::find(live + row, live + instruction.end, std::uint8_t{1}) - live;
      }
    }
    starts_.push_back(instructions_.size());
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      blocks_[i].instructions = {instructions_.data() + starts_[i], starts_[i + 1] - starts_[i]};
  }

  std::span<const GemmBlock> blocks() const { return blocks_; }
  std::int32_t num_scratch() const { return num_scratch_; }

 private:
  /// Makes the block that starts at `begin` the current one and lets it reach `end`.
  void enter(std::int64_t begin, std::int64_t end, const LaneProgram& program, std::size_t next) {
    if (blocks_.back().end == 0) blocks_.back() = {begin, begin, {}};
    if (blocks_.back().begin != begin) {
      const int slot = carrier(program, next);
      instructions_.push_back(LaneInstruction::store(slot));
      starts_.push_back(instructions_.size());
      blocks_.push_back({begin, begin, {}});
      instructions_.push_back(LaneInstruction::load(slot));
    }
    blocks_.back().end = std::max(blocks_.back().end, end);
  }

  /// A slot that may hold acc across a border: a buffer that the rest of the program overwrites
  /// before it reads it, or one more scratch slot.
  int carrier(const LaneProgram& program, std::size_t next) {
    const auto rest = program.instructions.subspan(next);
    for (int slot = 0; slot < program.num_buffers; ++slot) {
      const auto use = std::find_if(rest.begin(), rest.end(), [&](const LaneInstruction& it) {
        return it.slot == slot &&
               (it.op == LaneOp::load || it.op == LaneOp::merge || it.op == LaneOp::store);
      });
      if (use != rest.end() && use->op == LaneOp::store) return slot;
    }
    num_scratch_ = program.num_scratch + 1;
    return program.num_buffers + program.num_scratch;
  }

  std::vector<LaneInstruction> instructions_;
  std::vector<std::size_t> starts_;  // of each block's instructions
  std::vector<GemmBlock> blocks_;
  std::int32_t num_scratch_ = 0;
};

/// At least `size` floats, aligned to 64 bytes, kept by this thread for its next call.
float* workspace(std::int64_t size) {
  constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(float* p) const { ::operator delete(p, kAlignment); }
  };
  thread_local std::unique_ptr<float, Free> buffer;
  thread_local std::int64_t capacity = 0;
  if (size > capacity) {
    capacity = 0;
    buffer.reset();
    const auto bytes = static_cast<std::size_t>(size) * sizeof(float);
    buffer.reset(static_cast<float*>(::operator new(bytes, kAlignment)));
    capacity = size;
  }
  return buffer.get();
}

/// A grid of rectangles, one per thread.
struct Grid {
  std::int64_t rows = 1, cols = 1;
};

/// The grid of at most `threads` rectangles whose largest costs least. Cycles per k: 6 for a tile
/// of 6 x 16, half a cycle to pack an element of a or b.
Grid choose_grid(std::int64_t row_tiles, std::int64_t col_tiles, std::int64_t threads) {
  Grid best;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t rows = 1; rows <= std::min(threads, row_tiles); ++rows) {
    const std::int64_t cols = std::min(threads / rows, col_tiles);
    const std::int64_t m = ceil_div(row_tiles, rows), n = ceil_div(col_tiles, cols);
    const std::int64_t cost = 6 * m * n + 3 * m + 8 * n;
    if (cost < least) {
      least = cost;
      best = {rows, cols};
    }
  }
  return best;
}

void run_on_threads(const Gemm<float>& gemm, double work) {
  const std::int64_t m = gemm.a.rows, n = gemm.b.cols;
  const std::int64_t row_tiles = ceil_div(m, kTileRows), col_tiles = ceil_div(n, kTileCols);
  const double threads = std::clamp(work / kThreadWork, 1.0, static_cast<double>(num_threads()));
  const Grid grid = choose_grid(row_tiles, col_tiles, static_cast<std::int64_t>(threads));
  parallel_for(grid.rows * grid.cols, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i / grid.cols, col = i % grid.cols;
      const Rectangle part{row_tiles * row / grid.rows * kTileRows,
                           std::min(row_tiles * (row + 1) / grid.rows * kTileRows, m),
                           col_tiles * col / grid.cols * kTileCols,
                           std::min(col_tiles * (col + 1) / grid.cols * kTileCols, n)};
      float* const space = workspace(ACCRUE_DISPATCH(gemm_workspace, gemm, part));
      ACCRUE_DISPATCH(gemm_tiles, gemm, part, space);
    }
  });
}

}  // namespace

template <class T>
void gemm(Matrix<const T> a,
          Matrix<const T> b,
          std::span<const GemmSlot<T>> buffers,
          const LaneProgram& program,
          const std::uint8_t* live) {
  const std::int64_t m = a.rows, n = b.cols, k = a.cols;
  if (m == 0 || n == 0) return;
  const double work = static_cast<double>(m) * static_cast<double>(n) *
                      static_cast<double>(std::max<std::int64_t>(k, 1));
  const bool plain = !std::is_same_v<T, float> || work <= kElementWork;
  const Rectangle all{0, m, 0, n};
  if (plain && live == nullptr) {
    const GemmBlock block{0, k, program.instructions};
    const Gemm<T> problem{a, b, buffers, program.num_scratch, {&block, 1}};
    return ACCRUE_DISPATCH(gemm_elements, problem, all);
  }
  const std::int64_t num_blocks = plain ? 1 : std::max<std::int64_t>(ceil_div(k, kMaxDepth), 1);
  thread_local CutProgram cut;
  cut.cut(program, live, std::max<std::int64_t>(ceil_div(k, num_blocks), 1));
  const Gemm<T> problem{a, b, buffers, cut.num_scratch(), cut.blocks()};
  if constexpr (std::is_same_v<T, float>) {
    if (!plain) return run_on_threads(problem, work);
  }
  ACCRUE_DISPATCH(gemm_elements, problem, all);
}

template void gemm(Matrix<const float>,
                   Matrix<const float>,
                   std::span<const GemmSlot<float>>,
                   const LaneProgram&,
                   const std::uint8_t*);
template void gemm(Matrix<const double>,
                   Matrix<const double>,
                   std::span<const GemmSlot<double>>,
                   const LaneProgram&,
                   const std::uint8_t*);

}  // namespace accrue::kernels
