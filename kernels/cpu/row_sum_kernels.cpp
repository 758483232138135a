// One thread's row sums, in the order of core/sum_order.h.
#include "accrue/core/sum_order.h"
#include "accrue/kernels/cpu/row_kernels.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

template <class T, class Value>
void sum_rows(const RowSum<T>& args, RowRange rows, Value value) {
  const std::int64_t stride = args.x.col_stride;
  for (std::int64_t n = rows.begin; n < rows.end; ++n) {
    const T* x = row_of(args.x, n);
    args.sum[n] =
        stride == 1
            ? sum_in_order<T>(args.x.cols, [=](std::int64_t c) { return value(x[c]); })
            : sum_in_order<T>(args.x.cols, [=](std::int64_t c) { return value(x[c * stride]); });
  }
}

template <class T>
void sum_rows(const RowSum<T>& args, RowRange rows) {
  if (args.squares) return sum_rows(args, rows, [](T x) { return x * x; });
  sum_rows(args, rows, [](T x) { return x; });
}

}  // namespace

void run_rows(const RowSum<float>& args, RowRange rows) { sum_rows(args, rows); }
void run_rows(const RowSum<double>& args, RowRange rows) { sum_rows(args, rows); }

}  // namespace accrue::kernels::ACCRUE_ISA
