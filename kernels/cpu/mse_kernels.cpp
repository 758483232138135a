// One thread's rows of squared error, in the operations that kernels/mse.h lists.
#include "accrue/core/sum_order.h"
#include "accrue/kernels/cpu/row_kernels.h"
#include "accrue/kernels/scalar/float_ops.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

template <class T>
void forward(const MseForward<T>& args, RowRange rows) {
  for (std::int64_t n = rows.begin; n < rows.end; ++n) {
    const T* x = row_of(args.x, n);
    const T* y = row_of(args.y, n);
    args.loss[n] = accumulate_in_order<T>(args.x.cols, [=](T acc, std::int64_t c) {
      const T d = x[c] - y[c];
      return scalar::fma(d, d, acc);
    });
  }
}

template <class T>
void backward(const MseBackward<T>& args, RowRange rows) {
  const std::int64_t cols = args.x.cols;
  for (std::int64_t n = rows.begin; n < rows.end; ++n) {
    const T* x = row_of(args.x, n);
    const T* y = row_of(args.y, n);
    const T dloss = args.dloss[n * args.dloss_stride];
    const auto dx = [=](std::int64_t c) {
      const T d = x[c] - y[c];
      return (d + d) * dloss;
    };
    if (args.dx.data != nullptr) {
      T* out = row_of(args.dx, n);
      for (std::int64_t c = 0; c < cols; ++c) out[c] = dx(c);
    }
    if (args.dy.data != nullptr) {
      T* out = row_of(args.dy, n);
      for (std::int64_t c = 0; c < cols; ++c) out[c] = -dx(c);
    }
  }
}

}  // namespace

void run_rows(const MseForward<float>& args, RowRange rows) { forward(args, rows); }
void run_rows(const MseForward<double>& args, RowRange rows) { forward(args, rows); }
void run_rows(const MseBackward<float>& args, RowRange rows) { backward(args, rows); }
void run_rows(const MseBackward<double>& args, RowRange rows) { backward(args, rows); }

}  // namespace accrue::kernels::ACCRUE_ISA
