// The launcher of extremum.h: the dimension becomes the rows of a matrix, threads split the rows.
#include "accrue/kernels/cpu/extremum.h"

#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/parallel.h"
#include "accrue/kernels/extremum_checks.h"

namespace accrue::kernels {

void launch_cpu(const Extremum& args) {
  const SearchedRows searched(args);
  visit_floating(args.x.dtype(), args.operation, [&]<class T>(T) {
    const Tensor rows = searched.x.contiguous();
    const T* const x = rows.data<T>();
    T* const values = args.values.mutable_data<T>();
    std::int64_t* const indices = args.indices.mutable_data<std::int64_t>();
    const std::int64_t length = searched.length;
    parallel_for(args.values.numel(), row_grain(length), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const T* const first = x + row * length;
        indices[row] = ACCRUE_DISPATCH(find_extremum, first, length, args.largest);
        values[row] = first[indices[row]];
      }
    });
  });
}

}  // namespace accrue::kernels
