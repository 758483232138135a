// gemm(): the plain loop for small products, else one rectangle of tiles per thread.
#include "accrue/kernels/cpu/gemm.h"

#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/gemm_program.h"
#include "accrue/kernels/cpu/parallel.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

namespace accrue::kernels {
namespace {

constexpr std::int64_t kMaxDepth = 1024;                // of a block of k: b strips stream from L2
constexpr double kElementWork = 48;                     // products up to which the plain loop wins
constexpr double kThreadWork = 256 * 1024;              // products that are worth waking a thread
constexpr std::int64_t kTileRows = 12, kTileCols = 16;  // rectangles end at whole tiles of any path

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// At least `size` floats, aligned to 64 bytes, kept by this thread for its next call.
float* workspace(std::int64_t size) {
  static constexpr std::align_val_t kAlignment{64};
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

/// The grid of at most `threads` rectangles whose largest costs least. Cycles per k: 12 for 12 x 16
/// outputs, half a cycle to pack an element of a or b.
Grid choose_grid(std::int64_t row_tiles, std::int64_t col_tiles, std::int64_t threads) {
  Grid best;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t rows = 1; rows <= std::min(threads, row_tiles); ++rows) {
    const std::int64_t cols = std::min(threads / rows, col_tiles);
    const std::int64_t m = ceil_div(row_tiles, rows), n = ceil_div(col_tiles, cols);
    const std::int64_t cost = 12 * m * n + 6 * m + 8 * n;
    if (cost < least) {
      least = cost;
      best = {rows, cols};
    }
  }
  return best;
}

void run_tiles(const Gemm<float>& gemm, double work) {
  const std::int64_t m = gemm.a.rows, n = gemm.b.cols, k = gemm.a.cols;
  const std::int64_t num_blocks = ceil_div(k, kMaxDepth);
  const GemmBlocks program = GemmProgram::cut(gemm.program, gemm.live, ceil_div(k, num_blocks));

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
      float* const space = workspace(ACCRUE_DISPATCH_512(gemm_workspace, program, part));
      ACCRUE_DISPATCH_512(gemm_tiles, gemm, program, part, space);
    }
  });
}

}  // namespace

template <class T>
void gemm(const Gemm<T>& gemm) {
  const DefaultFloats floats;
  const double m = static_cast<double>(gemm.a.rows), n = static_cast<double>(gemm.b.cols);
  const double work = m * n * static_cast<double>(gemm.a.cols);
  if constexpr (std::is_same_v<T, float>) {
    if (work > kElementWork) return run_tiles(gemm, work);
  }
  ACCRUE_DISPATCH_512(gemm_elements, gemm);
}

template void gemm(const Gemm<float>&);
template void gemm(const Gemm<double>&);

}  // namespace accrue::kernels
