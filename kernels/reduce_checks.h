// What the arguments of kernels/reduce.h must fulfil on every device, and how they split x.
#pragma once

#include "accrue/kernels/reduce.h"

#include <array>

namespace accrue::kernels {

/// The dimensions of x, kept ones first, and the sizes of both groups.
struct SumSplit {
  std::array<int, kMaxRank> order{};
  Shape kept, summed;

  explicit SumSplit(const SumDims& args) {
    const Shape& shape = args.x.shape();
    std::size_t position = 0;
    for (const std::uint32_t in_sum : {0U, 1U}) {
      for (int d = 0; d < shape.rank(); ++d) {
        if ((args.dims >> d & 1) != in_sum) continue;
        order[position++] = d;
        (in_sum ? summed : kept).push_back(shape[d]);
      }
    }
  }
  std::int64_t num_sums() const { return product(kept, 0, kept.rank()); }
  std::int64_t length() const { return product(summed, 0, summed.rank()); }
  /// x with the kept dimensions first.
  Tensor permuted(const Tensor& x) const {
    return x.permute(std::span(order.data(), static_cast<std::size_t>(x.rank())));
  }
};

inline const char* name_of(const SumDims& args) { return args.squares ? "norm" : SumDims::kName; }

inline void check_arguments(const SumDims& args, const SumSplit& split) {
  ACCRUE_CHECK(args.y.shape() == split.kept,
               ShapeError,
               SumDims::kName,
               "the result must have the shape of the kept dimensions ",
               split.kept,
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

}  // namespace accrue::kernels
