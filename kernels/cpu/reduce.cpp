// Sums over dimensions: the kept dimensions become the rows of a matrix whose rows are summed.
#include "accrue/kernels/reduce.h"

#include "accrue/kernels/row_sum.h"

#include <array>

namespace accrue::kernels {

void launch_cpu(const SumDims& args) {
  std::array<int, kMaxRank> order{};
  Shape kept, summed;
  const int rank = args.x.rank();
  const auto is_summed = [&](int d) { return (args.dims >> d & 1) != 0; };
  int position = 0;
  for (const bool in_sum : {false, true}) {
    for (int d = 0; d < rank; ++d) {
      if (is_summed(d) != in_sum) continue;
      order[static_cast<std::size_t>(position++)] = d;
      (in_sum ? summed : kept).push_back(args.x.shape()[d]);
    }
  }
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
  visit_floating(args.x.dtype(), SumDims::kName, [&]<class T>(T) {
    const std::int64_t num_sums = product(kept, 0, kept.rank());
    const std::int64_t length = product(summed, 0, summed.rank());
    const Tensor rows =
        args.x.permute({order.data(), static_cast<std::size_t>(rank)}).reshape({num_sums, length});
    Tensor sums = args.y.is_contiguous() ? args.y : Tensor::empty(kept, args.y.dtype());
    const Matrix<const T> matrix{
        rows.data<T>(), num_sums, length, rows.strides()[0], rows.strides()[1]};
    launch_cpu(RowSum<T>{matrix, sums.mutable_data<T>()});
    if (!sums.shares_storage(args.y)) args.y.copy_from(sums);
  });
}

}  // namespace accrue::kernels
