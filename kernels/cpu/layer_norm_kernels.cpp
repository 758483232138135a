// One thread's rows of layer and RMS normalisation, in the operations that kernels/layer_norm.h
// lists.
#include "accrue/core/sum_order.h"
#include "accrue/kernels/cpu/row_kernels.h"
#include "accrue/kernels/scalar/layer_norm.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

using scalar::NormGradRow;
using scalar::NormRow;

template <class T>
void forward(const LayerNormForward<T>& args, RowRange rows) {
  const std::int64_t cols = args.x.cols;
  const T count = static_cast<T>(cols), eps = static_cast<T>(args.eps);
  const T *const w = args.weight, *const b = args.bias;
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    NormRow<T> row{row_of(args.x, r)};
    T* const y = row_of(args.y, r);
    if (args.kind == NormKind::layer) {
      row.mean = sum_in_order<T>(cols, [=](std::int64_t c) { return row.x[c]; }) / count;
    }
    const T squares =
        accumulate_in_order<T>(cols, [=](T acc, std::int64_t c) { return row.add_square(acc, c); });
    row.rstd = row.rstd_of(squares, count, eps);
    args.mean[r] = row.mean;
    args.rstd[r] = row.rstd;
    if (w == nullptr) {
      for (std::int64_t c = 0; c < cols; ++c) y[c] = row.output(c, nullptr, nullptr);
    } else if (b == nullptr) {
      for (std::int64_t c = 0; c < cols; ++c) y[c] = row.output(c, w, nullptr);
    } else {
      for (std::int64_t c = 0; c < cols; ++c) y[c] = row.output(c, w, b);
    }
  }
}

template <class T>
void input_gradient(const NormGradRow<T>& row, NormKind kind, std::int64_t cols, T* dx) {
  const T count = static_cast<T>(cols);
  const T k =
      accumulate_in_order<T>(cols, [=](T acc, std::int64_t c) { return row.add_product(acc, c); }) /
      count;
  if (kind == NormKind::rms) {
    for (std::int64_t c = 0; c < cols; ++c) dx[c] = row.dx(NormKind::rms, c, k, T(0));
    return;
  }
  const T offset = sum_in_order<T>(cols, [=](std::int64_t c) { return row.g(c); }) / count;
  for (std::int64_t c = 0; c < cols; ++c) dx[c] = row.dx(NormKind::layer, c, k, offset);
}

template <class T>
void backward(const LayerNormBackward<T>& args, RowRange rows) {
  const std::int64_t cols = args.x.cols;
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    const NormGradRow<T> row{
        {row_of(args.x, r), args.mean[r], args.rstd[r]}, row_of(args.dy, r), args.weight};
    if (args.dx.data != nullptr) input_gradient(row, args.kind, cols, row_of(args.dx, r));
    if (args.n.data == nullptr) continue;
    T* const n = row_of(args.n, r);
    for (std::int64_t c = 0; c < cols; ++c) n[c] = row.n(c);
  }
}

}  // namespace

void run_rows(const LayerNormForward<float>& args, RowRange rows) { forward(args, rows); }
void run_rows(const LayerNormForward<double>& args, RowRange rows) { forward(args, rows); }
void run_rows(const LayerNormBackward<float>& args, RowRange rows) { backward(args, rows); }
void run_rows(const LayerNormBackward<double>& args, RowRange rows) { backward(args, rows); }

}  // namespace accrue::kernels::ACCRUE_ISA
