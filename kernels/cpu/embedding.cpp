// Embedding on the CPU: checks, rows sorted by index, table rows dealt to threads.
#include "accrue/kernels/cpu/embedding.h"

#include "accrue/core/error.h"
#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/parallel.h"
#include "accrue/kernels/embedding_checks.h"

#include <algorithm>
#include <vector>

namespace accrue::kernels {
namespace {

void check_indices(const std::int64_t* indices, std::int64_t count, std::int64_t num_embeddings) {
  for (std::int64_t n = 0; n < count; ++n) {
    ACCRUE_CHECK(indices[n] >= 0 && indices[n] < num_embeddings,
                 IndexError,
                 "embedding",
                 "indices must lie in [0, ",
                 num_embeddings,
                 "), got ",
                 indices[n],
                 " at position ",
                 n,
                 "; check the vocabulary");
  }
}

/// Rows that count, sorted by table row and then by number: a counting sort.
struct SortedRows {
  std::vector<std::int64_t> starts, order;

  template <class T>
  explicit SortedRows(const EmbeddingGrad<T>& args)
      : starts(static_cast<std::size_t>(args.num_embeddings) + 1) {
    std::vector<std::int64_t> rows;
    for (std::int64_t n = 0; n < args.dy.rows; ++n) {
      const T* const dy = args.dy.data + n * args.dy.row_stride;
      const bool is_zero = std::all_of(dy, dy + args.dy.cols, [](T x) { return x == T(0); });
      if (args.indices[n] == args.padding_index || is_zero) continue;
      rows.push_back(n);
      ++starts[static_cast<std::size_t>(args.indices[n]) + 1];
    }
    for (std::size_t v = 1; v < starts.size(); ++v) starts[v] += starts[v - 1];
    order.resize(rows.size());
    std::vector<std::int64_t> next(starts);
    for (const std::int64_t n : rows) {
      const auto v = static_cast<std::size_t>(args.indices[n]);
      order[static_cast<std::size_t>(next[v]++)] = n;
    }
  }
};

}  // namespace

template <class T>
void launch_cpu(const EmbeddingForward<T>& args) {
  check_indices(args.indices, args.y.rows, args.table.rows);
  check_arguments(args);
  if (args.y.cols == 0) return;
  parallel_for(args.y.rows, row_grain(args.y.cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      std::copy_n(&args.table(args.indices[n], 0), args.y.cols, &args.y(n, 0));
    }
  });
}

template <class T>
void launch_cpu(const EmbeddingGrad<T>& args) {
  const DefaultFloats floats;
  check_indices(args.indices, args.dy.rows, args.num_embeddings);
  check_arguments(args);
  const SortedRows rows(args);
  const std::vector<LaneInstruction> idle = without_chains(args.program);
  const EmbeddingGradPlan<T> plan{args, rows.starts.data(), rows.order.data(), idle};
  const std::int64_t width = args.dy.cols;
  parallel_for(args.num_embeddings, row_grain(width), [&](std::int64_t begin, std::int64_t end) {
    std::vector<T> space(static_cast<std::size_t>(width * (1 + args.program.num_scratch)));
    ACCRUE_DISPATCH(embedding_grad, plan, begin, end, space.data());
  });
}

template void launch_cpu(const EmbeddingForward<float>&);
template void launch_cpu(const EmbeddingForward<double>&);
template void launch_cpu(const EmbeddingGrad<float>&);
template void launch_cpu(const EmbeddingGrad<double>&);

}  // namespace accrue::kernels
