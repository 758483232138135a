// Embedding on CUDA: rows copied by teams; their gradients sorted by table row, without atomics.
#include "accrue/kernels/cuda/fault.cuh"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/cuda/program_memory.h"
#include "accrue/kernels/cuda/quad.cuh"
#include "accrue/kernels/cuda/row_team.cuh"
#include "accrue/kernels/cuda/sort.cuh"
#include "accrue/kernels/embedding_checks.h"

#include <algorithm>

namespace accrue::kernels {
namespace {

using namespace cuda;

struct Lookup {
  EmbeddingForward<float> args;
  int* fault;

  template <class Team>
  ACCRUE_DEVICE void operator()(const Team& team, std::int64_t n) const {
    const std::int64_t v = args.indices[n], width = args.y.cols;
    const bool is_row = v >= 0 && v < args.table.rows;
    if (!is_row && team.index() == 0) note_fault(fault, Fault::table_row);
    const float* const from = args.table.data + (is_row ? v : 0) * args.table.row_stride;
    float* const to = args.y.data + n * args.y.row_stride;
    const float nan = __builtin_nanf("");
    for (std::int64_t e = kQuad * team.index(); e < width; e += kQuad * Team::kThreads) {
      write_quad(to, e, width, is_row ? read_quad(from, e, width) : Float4{{nan, nan, nan, nan}});
    }
  }
};

/// The key of each row is its table row, or the number of table rows if it does not count.
struct FindKeys {
  Matrix<const float> dy;
  const std::int64_t* indices;
  std::int64_t num_embeddings, padding_index;
  SortedRow* rows;
  int* fault;

  template <class Team>
  ACCRUE_DEVICE void operator()(Team& team, std::int64_t n) const {
    const float* const row = dy.data + n * dy.row_stride;
    const float largest =
        team.max(dy.cols, [=](std::int64_t e) { return row[e] != 0.0f ? 1.0f : 0.0f; });
    if (team.index() != 0) return;
    const std::int64_t v = indices[n];
    const bool is_row = v >= 0 && v < num_embeddings;
    if (!is_row) note_fault(fault, Fault::table_row);
    const bool counts = is_row && v != padding_index && largest == 1.0f;
    rows[n] = {counts ? v : num_embeddings, n};
  }
};

/// The first of `count` sorted rows that is not before (key, row).
ACCRUE_DEVICE std::int64_t find_row(const SortedRow* rows,
                                    std::int64_t count,
                                    std::int64_t key,
                                    std::int64_t row) {
  std::int64_t begin = 0;
  while (count > 0) {
    const std::int64_t half = count / 2;
    const SortedRow it = rows[begin + half];
    const bool is_before = it.key < key || (it.key == key && it.row < row);
    begin = is_before ? begin + half + 1 : begin;
    count = is_before ? count - half - 1 : half;
  }
  return begin;
}

constexpr int kStartThreads = 256;

/// starts[v]: where the rows of table row v begin, for v in [0, num_starts).
ACCRUE_KERNEL(kStartThreads)
void find_starts(const SortedRow* rows,
                 std::int64_t count,
                 std::int64_t num_starts,
                 std::int64_t* starts) {
  const std::int64_t v = std::int64_t{block_x()} * kStartThreads + thread_index();
  if (v < num_starts) starts[v] = find_row(rows, count, v, 0);
}

struct TableGrad {
  Matrix<const float> dy;
  std::int64_t num_embeddings;
  const SortedRow* rows;
  const std::int64_t* starts;
  const LaneInstruction* program;  ///< then what it does to a table row without rows
  int num_instructions, num_idle;
  float* const* buffers;
  int num_buffers;
  float* scratch;  ///< [num_scratch, threads of the grid]
};

/// The accumulator of an element of the table, for interpret().
struct TableElement {
  const TableGrad& grad;
  const SortedRow* rows;  ///< those of the table row
  std::int64_t num_rows, v, e, thread, num_threads;
  float acc = 0.0f;

  ACCRUE_DEVICE float& at(int slot) const {
    if (slot < grad.num_buffers) return grad.buffers[slot][v * grad.dy.cols + e];
    return grad.scratch[(slot - grad.num_buffers) * num_threads + thread];
  }
  ACCRUE_DEVICE void zero() { acc = 0.0f; }
  ACCRUE_DEVICE void load(int slot) { acc = at(slot); }
  ACCRUE_DEVICE void close() { acc = acc + 0.0f; }
  ACCRUE_DEVICE void merge(int slot) { acc = at(slot) + acc; }
  ACCRUE_DEVICE void store(int slot) { at(slot) = acc; }
  ACCRUE_DEVICE void chain(std::int64_t begin, std::int64_t end) {
    const SortedRow* it = rows + find_row(rows, num_rows, v, begin);
    const SortedRow* const last = rows + find_row(rows, num_rows, v, end);
    ACCRUE_UNROLL_BY(4)
    for (; it < last; ++it) acc = acc + grad.dy.data[it->row * grad.dy.row_stride + e];
  }
};

constexpr int kGradThreads = 256;
constexpr std::int64_t kGradBlocks = 2048;  // at most: each thread has scratch of its own

/// A warp runs the program on 32 neighbours of a table row, then on others.
ACCRUE_KERNEL(kGradThreads) void table_grad_kernel(ACCRUE_PARAMETER TableGrad grad) {
  constexpr int kWarps = kGradThreads / kWarpSize;
  const std::int64_t width = grad.dy.cols, parts = (width + kWarpSize - 1) / kWarpSize;
  const std::int64_t num_warps = std::int64_t{num_blocks_x()} * kWarps;
  std::int64_t warp = std::int64_t{block_x()} * kWarps + thread_index() / kWarpSize;
  const std::int64_t thread = std::int64_t{block_x()} * kGradThreads + thread_index();
  for (; warp < grad.num_embeddings * parts; warp += num_warps) {
    const std::int64_t v = warp / parts;
    const std::int64_t e = warp % parts * kWarpSize + thread_index() % kWarpSize;
    if (e >= width) continue;
    const std::int64_t begin = grad.starts[v], count = grad.starts[v + 1] - begin;
    const bool has_rows = count != 0;
    TableElement element{grad, grad.rows + begin, count, v, e, thread, num_warps * kWarpSize};
    const LaneInstruction* const first = grad.program + (has_rows ? 0 : grad.num_instructions);
    interpret(first, first + (has_rows ? grad.num_instructions : grad.num_idle), element);
  }
}

std::size_t bytes(std::int64_t count, std::size_t size) {
  return static_cast<std::size_t>(count) * size;
}

/// Runs the program of args on rows that are sorted.
void run_program(const EmbeddingGrad<float>& args,
                 const SortedRow* rows,
                 const std::int64_t* starts,
                 Stream stream) {
  const std::vector<LaneInstruction> idle = without_chains(args.program);
  std::vector<LaneInstruction> program(args.program.instructions.begin(),
                                       args.program.instructions.end());
  program.insert(program.end(), idle.begin(), idle.end());
  const Upload<LaneInstruction> instructions(program, stream);
  const Upload<float*> buffers(args.buffers, stream);
  constexpr std::int64_t kWarps = kGradThreads / kWarpSize;
  const std::int64_t parts = (args.dy.cols + kWarpSize - 1) / kWarpSize;
  const std::int64_t blocks =
      std::min((args.num_embeddings * parts + kWarps - 1) / kWarps, kGradBlocks);
  Workspace scratch(bytes(args.program.num_scratch * blocks * kGradThreads, sizeof(float)), stream);
  const TableGrad grad{args.dy,
                       args.num_embeddings,
                       rows,
                       starts,
                       instructions.data(),
                       static_cast<int>(args.program.instructions.size()),
                       static_cast<int>(idle.size()),
                       buffers.data(),
                       static_cast<int>(args.buffers.size()),
                       scratch.as<float>()};
  const Launch how{.name = args.kName, .grid_x = blocks, .threads = kGradThreads, .stream = stream};
  launch(how, table_grad_kernel, grad);
}

}  // namespace

void launch_cuda(const EmbeddingForward<float>& args, Stream stream) {
  check_arguments(args);
  if (args.y.cols == 0) return;
  launch_rows(args.kName, args.y.rows, args.y.cols, Lookup{args, stream.fault}, stream);
}

void launch_cuda(const EmbeddingGrad<float>& args, Stream stream) {
  check_arguments(args);
  const std::int64_t count = args.dy.rows, num_starts = args.num_embeddings + 1;
  if (args.num_embeddings == 0 || args.dy.cols == 0) return;
  Workspace rows(bytes(count, sizeof(SortedRow)), stream);
  Workspace space(bytes(count, sizeof(SortedRow)), stream);
  Workspace starts(bytes(num_starts, sizeof(std::int64_t)), stream);
  const FindKeys find_keys{args.dy,
                           args.indices,
                           args.num_embeddings,
                           args.padding_index,
                           rows.as<SortedRow>(),
                           stream.fault};
  launch_rows("embedding_keys", count, args.dy.cols, find_keys, stream);
  const SortedRow* const sorted =
      sort_rows(rows.as<SortedRow>(), space.as<SortedRow>(), count, args.num_embeddings, stream);
  launch({.name = "embedding_starts",
          .grid_x = (num_starts + kStartThreads - 1) / kStartThreads,
          .threads = kStartThreads,
          .stream = stream},
         find_starts,
         sorted,
         count,
         num_starts,
         starts.as<std::int64_t>());
  run_program(args, sorted, starts.as<std::int64_t>(), stream);
}

}  // namespace accrue::kernels
