// EmbeddingGrad: the lane program on one row of the table at a time.
#include "accrue/kernels/cpu/embedding.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

/// The accumulator of a row of the table, for interpret().
template <class T>
struct RowTile {
  const EmbeddingGradPlan<T>& plan;
  T* acc;
  std::int64_t row = 0;

  ACCRUE_HD std::int64_t width() const { return plan.args.dy.cols; }
  ACCRUE_HD T* at(std::int32_t slot) const {
    const auto num_buffers = static_cast<std::int32_t>(plan.args.buffers.size());
    if (slot >= num_buffers) return acc + (slot - num_buffers + 1) * width();
    return plan.args.buffers[static_cast<std::size_t>(slot)] + row * width();
  }
  ACCRUE_HD void zero() {
    for (std::int64_t i = 0; i < width(); ++i) acc[i] = 0;
  }
  ACCRUE_HD void load(std::int32_t slot) {
    const T* const from = at(slot);
    for (std::int64_t i = 0; i < width(); ++i) acc[i] = from[i];
  }
  ACCRUE_HD void close() {
    for (std::int64_t i = 0; i < width(); ++i) acc[i] = acc[i] + T(0);
  }
  ACCRUE_HD void merge(std::int32_t slot) {
    const T* const left = at(slot);
    for (std::int64_t i = 0; i < width(); ++i) acc[i] = left[i] + acc[i];
  }
  ACCRUE_HD void store(std::int32_t slot) {
    T* const to = at(slot);
    for (std::int64_t i = 0; i < width(); ++i) to[i] = acc[i];
  }
  ACCRUE_HD void chain(std::int64_t begin, std::int64_t end) {
    const std::int64_t* n = plan.order + plan.starts[row];
    const std::int64_t* const last = plan.order + plan.starts[row + 1];
    while (n != last && *n < begin) ++n;
    for (; n != last && *n < end; ++n) {
      const T* const dy = plan.args.dy.data + *n * plan.args.dy.row_stride;
      for (std::int64_t i = 0; i < width(); ++i) acc[i] = acc[i] + dy[i];
    }
  }
};

template <class T>
void run(const EmbeddingGradPlan<T>& plan, std::int64_t begin, std::int64_t end, T* space) {
  RowTile<T> tile{plan, space};
  for (tile.row = begin; tile.row < end; ++tile.row) {
    const bool has_rows = plan.starts[tile.row] != plan.starts[tile.row + 1];
    const auto& instructions = has_rows ? plan.args.program.instructions : plan.idle;
    interpret(instructions.data(), instructions.data() + instructions.size(), tile);
  }
}

}  // namespace

void embedding_grad(const EmbeddingGradPlan<float>& plan,
                    std::int64_t begin,
                    std::int64_t end,
                    float* space) {
  run(plan, begin, end, space);
}
void embedding_grad(const EmbeddingGradPlan<double>& plan,
                    std::int64_t begin,
                    std::int64_t end,
                    double* space) {
  run(plan, begin, end, space);
}

}  // namespace accrue::kernels::ACCRUE_ISA
