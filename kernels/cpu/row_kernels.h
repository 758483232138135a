// One thread's share of the row kernels, compiled once per instruction set. Arguments are checked.
#pragma once

#include "accrue/kernels/cross_entropy.h"
#include "accrue/kernels/layer_norm.h"
#include "accrue/kernels/mse.h"
#include "accrue/kernels/row_sum.h"
#include "accrue/kernels/softmax.h"

#include <cstdint>

namespace accrue::kernels {

/// The rows [begin, end).
struct RowRange {
  std::int64_t begin = 0, end = 0;
};

/// Where row n begins. A matrix without columns may have no memory.
template <class T>
ACCRUE_HD T* row_of(const Matrix<T>& matrix, std::int64_t n) {
  return matrix.cols == 0 ? matrix.data : matrix.data + n * matrix.row_stride;
}

namespace portable {
void run_rows(const CrossEntropyForward<float>& args, RowRange rows);
void run_rows(const CrossEntropyForward<double>& args, RowRange rows);
void run_rows(const CrossEntropyBackward<float>& args, RowRange rows);
void run_rows(const CrossEntropyBackward<double>& args, RowRange rows);
void run_rows(const LayerNormForward<float>& args, RowRange rows);
void run_rows(const LayerNormForward<double>& args, RowRange rows);
void run_rows(const LayerNormBackward<float>& args, RowRange rows);
void run_rows(const LayerNormBackward<double>& args, RowRange rows);
void run_rows(const MseForward<float>& args, RowRange rows);
void run_rows(const MseForward<double>& args, RowRange rows);
void run_rows(const MseBackward<float>& args, RowRange rows);
void run_rows(const MseBackward<double>& args, RowRange rows);
void run_rows(const SoftmaxForward<float>& args, RowRange rows);
void run_rows(const SoftmaxForward<double>& args, RowRange rows);
void run_rows(const SoftmaxBackward<float>& args, RowRange rows);
void run_rows(const SoftmaxBackward<double>& args, RowRange rows);
void run_rows(const RowSum<float>& args, RowRange rows);
void run_rows(const RowSum<double>& args, RowRange rows);
}  // namespace portable

namespace avx2 {
void run_rows(const CrossEntropyForward<float>& args, RowRange rows);
void run_rows(const CrossEntropyForward<double>& args, RowRange rows);
void run_rows(const CrossEntropyBackward<float>& args, RowRange rows);
void run_rows(const CrossEntropyBackward<double>& args, RowRange rows);
void run_rows(const LayerNormForward<float>& args, RowRange rows);
void run_rows(const LayerNormForward<double>& args, RowRange rows);
void run_rows(const LayerNormBackward<float>& args, RowRange rows);
void run_rows(const LayerNormBackward<double>& args, RowRange rows);
void run_rows(const MseForward<float>& args, RowRange rows);
void run_rows(const MseForward<double>& args, RowRange rows);
void run_rows(const MseBackward<float>& args, RowRange rows);
void run_rows(const MseBackward<double>& args, RowRange rows);
void run_rows(const SoftmaxForward<float>& args, RowRange rows);
void run_rows(const SoftmaxForward<double>& args, RowRange rows);
void run_rows(const SoftmaxBackward<float>& args, RowRange rows);
void run_rows(const SoftmaxBackward<double>& args, RowRange rows);
void run_rows(const RowSum<float>& args, RowRange rows);
void run_rows(const RowSum<double>& args, RowRange rows);
}  // namespace avx2

}  // namespace accrue::kernels
