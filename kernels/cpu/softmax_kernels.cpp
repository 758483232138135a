// One thread's rows of softmax and its logarithm, in the operations that kernels/softmax.h lists.
#include "accrue/core/sum_order.h"
#include "accrue/kernels/cpu/row_kernels.h"
#include "accrue/kernels/scalar/exp.h"
#include "accrue/kernels/scalar/log.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

template <class T>
void forward(const SoftmaxForward<T>& args, RowRange rows) {
  const std::int64_t cols = args.x.cols;
  for (std::int64_t n = rows.begin; n < rows.end; ++n) {
    const T* x = row_of(args.x, n);
    T* y = row_of(args.y, n);
    const T max = max_in_order<T>(cols, [=](std::int64_t c) { return x[c]; });
    if (args.kind == SoftmaxKind::plain) {
      for (std::int64_t c = 0; c < cols; ++c) y[c] = scalar::exp(x[c] - max);
      const T sum = sum_in_order<T>(cols, [=](std::int64_t c) { return y[c]; });
      for (std::int64_t c = 0; c < cols; ++c) y[c] = y[c] / sum;
    } else {
      const T sum = sum_in_order<T>(cols, [=](std::int64_t c) { return scalar::exp(x[c] - max); });
      const T log_sum = scalar::log(sum);
      for (std::int64_t c = 0; c < cols; ++c) y[c] = (x[c] - max) - log_sum;
    }
  }
}

template <class T>
void backward(const SoftmaxBackward<T>& args, RowRange rows) {
  const std::int64_t cols = args.y.cols;
  for (std::int64_t n = rows.begin; n < rows.end; ++n) {
    const T* y = row_of(args.y, n);
    const T* dy = row_of(args.dy, n);
    T* dx = row_of(args.dx, n);
    if (args.kind == SoftmaxKind::plain) {
      const T k = accumulate_in_order<T>(
          cols, [=](T acc, std::int64_t c) { return scalar::fma(dy[c], y[c], acc); });
      for (std::int64_t c = 0; c < cols; ++c) dx[c] = y[c] * (dy[c] - k);
    } else {
      const T k = sum_in_order<T>(cols, [=](std::int64_t c) { return dy[c]; });
      for (std::int64_t c = 0; c < cols; ++c) {
        dx[c] = scalar::fma(-scalar::exp(y[c]), k, dy[c]);
      }
    }
  }
}

}  // namespace

void run_rows(const SoftmaxForward<float>& args, RowRange rows) { forward(args, rows); }
void run_rows(const SoftmaxForward<double>& args, RowRange rows) { forward(args, rows); }
void run_rows(const SoftmaxBackward<float>& args, RowRange rows) { backward(args, rows); }
void run_rows(const SoftmaxBackward<double>& args, RowRange rows) { backward(args, rows); }

}  // namespace accrue::kernels::ACCRUE_ISA
