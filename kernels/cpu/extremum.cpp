// The launcher of extremum.h: the dimension becomes the rows of a matrix, threads split the rows.
#include "accrue/kernels/extremum.h"

#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/extremum.h"
#include "accrue/kernels/cpu/parallel.h"

namespace accrue::kernels {
namespace {

void check_result(const Extremum& args, const Tensor& result, const Shape& shape, DType dtype) {
  ACCRUE_CHECK(result.shape() == shape && result.is_contiguous(),
               ShapeError,
               args.operation,
               "results must be contiguous with shape ",
               shape,
               ", got ",
               result.shape());
  ACCRUE_CHECK(result.dtype() == dtype,
               DTypeError,
               args.operation,
               "the result must have dtype ",
               dtype,
               ", got ",
               result.dtype());
}

}  // namespace

void launch_cpu(const Extremum& args) {
  const Tensor flat = args.x.rank() == 0 ? args.x.unsqueeze(0) : args.x;
  const std::int64_t length = flat.shape()[args.dim];
  ACCRUE_CHECK(length > 0,
               IndexError,
               args.operation,
               "the dimension must hold an element, got shape ",
               args.x.shape(),
               " along ",
               args.dim);
  Shape kept;
  std::vector<int> order;
  for (int d = 0; d < flat.rank(); ++d) {
    if (d == args.dim) continue;
    kept.push_back(flat.shape()[d]);
    order.push_back(d);
  }
  order.push_back(args.dim);
  check_result(args, args.values, kept, args.x.dtype());
  check_result(args, args.indices, kept, DType::int64);
  visit_floating(args.x.dtype(), args.operation, [&]<class T>(T) {
    const Tensor rows = flat.permute(order).contiguous();
    const T* const x = rows.data<T>();
    T* const values = args.values.mutable_data<T>();
    std::int64_t* const indices = args.indices.mutable_data<std::int64_t>();
    constexpr std::int64_t kThreadWork = 16 * 1024;  // elements that are worth a thread
    parallel_for(
        args.values.numel(), kThreadWork / length + 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            const T* const first = x + row * length;
            indices[row] = ACCRUE_DISPATCH(find_extremum, first, length, args.largest);
            values[row] = first[indices[row]];
          }
        });
  });
}

}  // namespace accrue::kernels
