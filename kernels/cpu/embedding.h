// One thread's table rows of EmbeddingGrad, compiled per instruction set.
#pragma once

#include "accrue/kernels/embedding.h"

namespace accrue::kernels {

/// EmbeddingGrad with its rows sorted by table row.
template <class T>
struct EmbeddingGradPlan {
  const EmbeddingGrad<T>& args;
  const std::int64_t* starts;  ///< [V + 1]: where the rows of a table row begin in `order`
  const std::int64_t* order;   ///< rows of dy, ascending for each table row
  std::span<const LaneInstruction> idle;  ///< what the program does to a table row without rows
};

// Table rows [begin, end); `space` holds E * (1 + num_scratch) elements.
namespace portable {
void embedding_grad(const EmbeddingGradPlan<float>& plan,
                    std::int64_t begin,
                    std::int64_t end,
                    float* space);
void embedding_grad(const EmbeddingGradPlan<double>& plan,
                    std::int64_t begin,
                    std::int64_t end,
                    double* space);
}  // namespace portable
namespace avx2 {
void embedding_grad(const EmbeddingGradPlan<float>& plan,
                    std::int64_t begin,
                    std::int64_t end,
                    float* space);
void embedding_grad(const EmbeddingGradPlan<double>& plan,
                    std::int64_t begin,
                    std::int64_t end,
                    double* space);
}  // namespace avx2

}  // namespace accrue::kernels
