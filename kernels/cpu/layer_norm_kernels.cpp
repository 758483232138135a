// One thread's rows of layer and RMS normalisation, in the operations that kernels/layer_norm.h
// lists.
#include "accrue/core/sum_order.h"
#include "accrue/kernels/cpu/row_kernels.h"
#include "accrue/kernels/scalar/float_ops.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

float square_root(float x) { return __builtin_sqrtf(x); }
double square_root(double x) { return __builtin_sqrt(x); }

template <class T>
void forward(const LayerNormForward<T>& args, RowRange rows) {
  const std::int64_t cols = args.x.cols;
  const T count = static_cast<T>(cols), eps = static_cast<T>(args.eps);
  const T *const w = args.weight, *const b = args.bias;
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    const T* const x = row_of(args.x, r);
    T* const y = row_of(args.y, r);
    T mean = 0;
    if (args.kind == NormKind::layer) {
      mean = sum_in_order<T>(cols, [=](std::int64_t c) { return x[c]; }) / count;
    }
    const T squares = accumulate_in_order<T>(cols, [=](T acc, std::int64_t c) {
      const T d = x[c] - mean;  // for rms x[c] - 0, which is x[c]
      return scalar::fma(d, d, acc);
    });
    const T rstd = T(1) / square_root(squares / count + eps);
    args.mean[r] = mean;
    args.rstd[r] = rstd;
    if (w == nullptr) {
      for (std::int64_t c = 0; c < cols; ++c) y[c] = (x[c] - mean) * rstd;
    } else if (b == nullptr) {
      for (std::int64_t c = 0; c < cols; ++c) y[c] = (x[c] - mean) * rstd * w[c];
    } else {
      for (std::int64_t c = 0; c < cols; ++c) {
        y[c] = scalar::fma((x[c] - mean) * rstd, w[c], b[c]);
      }
    }
  }
}

/// One row of LayerNormBackward.
template <class T>
struct Row {
  const T *x, *dy, *w;
  T mean, rstd;

  ACCRUE_HD T n(std::int64_t c) const { return (x[c] - mean) * rstd; }
  ACCRUE_HD T g(std::int64_t c) const { return w == nullptr ? dy[c] : dy[c] * w[c]; }
};

template <class T>
void input_gradient(const Row<T>& row, NormKind kind, std::int64_t cols, T* dx) {
  const T count = static_cast<T>(cols);
  const T k =
      accumulate_in_order<T>(
          cols, [=](T acc, std::int64_t c) { return scalar::fma(row.g(c), row.n(c), acc); }) /
      count;
  if (kind == NormKind::rms) {
    for (std::int64_t c = 0; c < cols; ++c) {
      dx[c] = row.rstd * scalar::fma(-row.n(c), k, row.g(c));
    }
    return;
  }
  const T offset = sum_in_order<T>(cols, [=](std::int64_t c) { return row.g(c); }) / count;
  for (std::int64_t c = 0; c < cols; ++c) {
    dx[c] = row.rstd * scalar::fma(-row.n(c), k, row.g(c) - offset);
  }
}

template <class T>
void backward(const LayerNormBackward<T>& args, RowRange rows) {
  const std::int64_t cols = args.x.cols;
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    const Row<T> row{
        row_of(args.x, r), row_of(args.dy, r), args.weight, args.mean[r], args.rstd[r]};
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
