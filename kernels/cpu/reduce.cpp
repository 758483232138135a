// Sums over dimensions: the kept dimensions become the rows of a matrix whose rows are summed.
#include "accrue/kernels/cpu/reduce.h"

#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/parallel.h"
#include "accrue/kernels/reduce_checks.h"
#include "accrue/kernels/row_sum.h"

namespace accrue::kernels {

namespace {

/// Row sums; where rows lie beside each other in memory, neighbours are summed together.
template <class T>
void sum_rows(const Matrix<const T>& x, T* sums, bool squares) {
  if (x.row_stride != 1 || x.col_stride == 1) return launch_cpu(RowSum<T>{x, sums, squares});
  const ColumnSums<T> columns{x.data, x.col_stride, x.cols, sums, squares};
  parallel_for(x.rows, row_grain(x.cols), [&](std::int64_t begin, std::int64_t end) {
    ACCRUE_DISPATCH(sum_columns, columns, begin, end);
  });
}

}  // namespace

void launch_cpu(const SumDims& args) {
  const SumSplit split(args);
  check_arguments(args, split);
  const std::int64_t num_sums = split.num_sums(), length = split.length();
  const Tensor rows = split.permuted(args.x).reshape({num_sums, length});
  Tensor sums = args.y.is_contiguous() ? args.y : Tensor::empty(split.kept, args.y.dtype());
  visit_floating(args.x.dtype(), name_of(args), [&]<class T>(T) {
    sum_rows<T>({rows.data<T>(), num_sums, length, rows.strides()[0], rows.strides()[1]},
                sums.mutable_data<T>(),
                args.squares);
  });
  if (!sums.shares_storage(args.y)) args.y.copy_from(sums);
}

}  // namespace accrue::kernels
