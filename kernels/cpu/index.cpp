// Picking by index: one walk over the index, in which the picked tensor stands still along `dim`.
#include "accrue/kernels/cpu/parallel_runs.h"
#include "accrue/kernels/index_checks.h"

#include <algorithm>

namespace accrue::kernels {
namespace {

constexpr std::int64_t kGrain = 16384;  // elements that are worth waking a thread for

/// Whether all indices lie in [0, size). Dimensions that an expansion stretched are read once.
bool all_below(const Tensor& index, std::int64_t size) {
  Shape shape = index.shape();
  for (int d = 0; d < shape.rank(); ++d)
    if (index.strides()[d] == 0 && shape[d] > 1) shape[d] = 1;
  const std::int64_t* const first = index.data<std::int64_t>();
  const auto last = static_cast<std::uint64_t>(size - 1);
  std::uint64_t outside = 0;
  for_each_run<1>(shape, {index.strides()}, [&](const StridedRun<1>& run) {
    const std::int64_t* const values = first + run.offset[0];
    const auto look_at = [&](std::int64_t stride) {
      for (std::int64_t i = 0; i < run.count; ++i) {
        const auto value = static_cast<std::uint64_t>(values[i * stride]);
        outside |= value | (last - value);
      }
    };
    run.stride[0] == 1 ? look_at(1) : look_at(run.stride[0]);
  });
  return outside >> 63 == 0;
}

/// Names the first index outside [0, size).
void refuse_first(const char* operation, const Tensor& index, std::int64_t size) {
  const std::int64_t* const first = index.data<std::int64_t>();
  std::int64_t position = 0;
  for_each_run<1>(index.shape(), {index.strides()}, [&](const StridedRun<1>& run) {
    for (std::int64_t i = 0; i < run.count; ++i, ++position) {
      const std::int64_t value = first[run.offset[0] + i * run.stride[0]];
      ACCRUE_CHECK(value >= 0 && value < size,
                   IndexError,
                   operation,
                   "indices must lie in [0, ",
                   size,
                   "), got ",
                   value,
                   " at position ",
                   position);
    }
  });
}

void check_values(const char* operation, const Tensor& index, std::int64_t limit) {
  if (!all_below(index, limit)) refuse_first(operation, index, limit);
}

template <class T>
void add_row(const T* in, std::int64_t count, T* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] += in[i];
}

}  // namespace

void launch_cpu(const Gather& args) {
  check_arguments(args);
  check_values(args.operation, args.index, index_limit(args.x, args.dim));
  const auto [outer, along] = without_dim(args.x, args.dim);
  const Shape strides = outer;
  const std::int64_t step = along;
  const std::int64_t* const index = args.index.data<std::int64_t>();
  visit_dtype(args.x.dtype(), [&]<class T>(T) {
    const T* const x = args.x.data<T>();
    T* const y = args.y.mutable_data<T>();
    parallel_runs<3>(args.index.shape(),
                     {args.index.strides(), args.y.strides(), strides},
                     args.index.numel(),
                     kGrain,
                     [&](const StridedRun<3>& run) {
                       const auto [of_index, of_y, of_x] = run.stride;
                       const std::int64_t* const picks = index + run.offset[0];
                       const T* const in = x + run.offset[2];
                       T* const out = y + run.offset[1];
                       if (of_index == 0 && of_y == 1 && of_x == 1) {  // a row
                         std::copy_n(in + *picks * step, run.count, out);
                         return;
                       }
                       if (of_index == 1 && of_y == 1 && of_x == 0 && step == 1) {  // out of a row
                         for (std::int64_t i = 0; i < run.count; ++i) out[i] = in[picks[i]];
                         return;
                       }
                       for (std::int64_t i = 0; i < run.count; ++i) {
                         out[i * of_y] = in[i * of_x + picks[i * of_index] * step];
                       }
                     });
  });
}

void launch_cpu(const ScatterAdd& args) {
  const DefaultFloats floats;
  check_arguments(args);
  check_values(args.operation, args.index, index_limit(args.dx, args.dim));
  const auto [outer, along] = without_dim(args.dx, args.dim);
  const Shape strides = outer;
  const std::int64_t step = along;
  const std::int64_t* const index = args.index.data<std::int64_t>();
  visit_floating(args.dx.dtype(), args.operation, [&]<class T>(T) {
    const T* const dy = args.dy.data<T>();
    T* const dx = args.dx.mutable_data<T>();
    for_each_run<3>(args.index.shape(),
                    {args.index.strides(), args.dy.strides(), strides},
                    [&](const StridedRun<3>& run) {
                      const auto [of_index, of_y, of_x] = run.stride;
                      const std::int64_t* const picks = index + run.offset[0];
                      const T* const in = dy + run.offset[1];
                      T* const out = dx + run.offset[2];
                      if (of_index == 0 && of_y == 1 && of_x == 1) {
                        return add_row(in, run.count, out + *picks * step);
                      }
                      for (std::int64_t i = 0; i < run.count; ++i) {
                        out[i * of_x + picks[i * of_index] * step] += in[i * of_y];
                      }
                    });
  });
}

}  // namespace accrue::kernels
