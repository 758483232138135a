// Sums over dimensions: the kept dimensions become the rows of a matrix whose rows are summed.
#include "accrue/kernels/reduce.h"

#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/parallel.h"
#include "accrue/kernels/cpu/reduce.h"
#include "accrue/kernels/row_sum.h"

#include <algorithm>
#include <array>

namespace accrue::kernels {

namespace {

/// The dimensions of x, kept ones first, and the sizes of both groups.
struct Split {
  std::array<int, kMaxRank> order{};
  Shape kept, summed;
};

Split split(const Shape& shape, std::uint32_t dims) {
  Split result;
  std::size_t position = 0;
  for (const std::uint32_t in_sum : {0U, 1U}) {
    for (int d = 0; d < shape.rank(); ++d) {
      if ((dims >> d & 1) != in_sum) continue;
      result.order[position++] = d;
      (in_sum ? result.summed : result.kept).push_back(shape[d]);
    }
  }
  return result;
}

void check_result(const SumDims& args, const Shape& kept) {
  ACCRUE_CHECK(args.y.shape() == kept,
               ShapeError,
               SumDims::kName,
               "the result must have the shape of the kept dimensions ",
               kept,
               ", got ",
               args.y.shape(),
               "; unsqueeze it afterwards to keep all");
  ACCRUE_CHECK(args.y.dtype() == args.x.dtype(),
               DTypeError,
               SumDims::kName,
               "the result must have the operand's dtype ",
               args.x.dtype(),
               ", got ",
               args.y.dtype(),
               "; convert with to()");
}

/// Row sums; where rows lie beside each other in memory, neighbours are summed together.
template <class T>
void sum_rows(const Matrix<const T>& x, T* sums, bool squares) {
  if (x.row_stride != 1 || x.col_stride == 1) return launch_cpu(RowSum<T>{x, sums, squares});
  constexpr std::int64_t kThreadWork = 16 * 1024;  // elements that are worth a thread
  const std::int64_t grain = kThreadWork / std::max<std::int64_t>(x.cols, 1) + 1;
  const ColumnSums<T> columns{x.data, x.col_stride, x.cols, sums, squares};
  parallel_for(x.rows, grain, [&](std::int64_t begin, std::int64_t end) {
    ACCRUE_DISPATCH(sum_columns, columns, begin, end);
  });
}

}  // namespace

void launch_cpu(const SumDims& args) {
  const auto [order, kept, summed] = split(args.x.shape(), args.dims);
  check_result(args, kept);
  const std::int64_t num_sums = product(kept, 0, kept.rank());
  const std::int64_t length = product(summed, 0, summed.rank());
  const std::span<const int> dims(order.data(), static_cast<std::size_t>(args.x.rank()));
  const Tensor rows = args.x.permute(dims).reshape({num_sums, length});
  Tensor sums = args.y.is_contiguous() ? args.y : Tensor::empty(kept, args.y.dtype());
  const char* const name = args.squares ? "norm" : SumDims::kName;
  visit_floating(args.x.dtype(), name, [&]<class T>(T) {
    sum_rows<T>({rows.data<T>(), num_sums, length, rows.strides()[0], rows.strides()[1]},
                sums.mutable_data<T>(),
                args.squares);
  });
  if (!sums.shares_storage(args.y)) args.y.copy_from(sums);
}

}  // namespace accrue::kernels
