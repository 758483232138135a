// What the arguments of kernels/extremum.h must fulfil on every device, and how they split x.
#pragma once

#include "accrue/kernels/extremum.h"

#include <vector>

namespace accrue::kernels {

/// The rows that are searched: x with the dimension last.
struct SearchedRows {
  Tensor x;
  Shape kept;  ///< the sizes of the other dimensions
  std::int64_t length;

  /// Errors:  those of Extremum, but for the dtype of x.
  explicit SearchedRows(const Extremum& args)
      : x(args.x.rank() == 0 ? args.x.unsqueeze(0) : args.x), length(x.shape()[args.dim]) {
    ACCRUE_CHECK(length > 0,
                 IndexError,
                 args.operation,
                 "the dimension must hold an element, got shape ",
                 args.x.shape(),
                 " along ",
                 args.dim);
    std::vector<int> order;
    for (int d = 0; d < x.rank(); ++d) {
      if (d == args.dim) continue;
      kept.push_back(x.shape()[d]);
      order.push_back(d);
    }
    order.push_back(args.dim);
    x = x.permute(order);
    check_result(args.operation, args.values, args.x.dtype());
    check_result(args.operation, args.indices, DType::int64);
  }

 private:
  void check_result(const char* operation, const Tensor& result, DType dtype) const {
    ACCRUE_CHECK(result.shape() == kept && result.is_contiguous(),
                 ShapeError,
                 operation,
                 "results must be contiguous with shape ",
                 kept,
                 ", got ",
                 result.shape());
    ACCRUE_CHECK(result.dtype() == dtype,
                 DTypeError,
                 operation,
                 "the result must have dtype ",
                 dtype,
                 ", got ",
                 result.dtype());
  }
};

}  // namespace accrue::kernels
