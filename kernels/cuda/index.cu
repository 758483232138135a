// Picking by index on CUDA, and the gradients added back without atomics.
#include "accrue/kernels/cuda/each.cuh"
#include "accrue/kernels/cuda/fault.cuh"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/elementwise_checks.h"
#include "accrue/kernels/index_checks.h"

namespace accrue::kernels {
namespace {

using namespace cuda;

/// The picked tensor stands still along `dim`, where an index counts `step` elements.
struct Picks {
  Layouts<3> layouts;  ///< of the index, what it names, and the picked tensor
  const std::int64_t* index;
  std::int64_t step, limit;
  int* fault;

  ACCRUE_DEVICE bool is_valid(std::int64_t pick) const {
    const bool is_inside = pick >= 0 && pick < limit;
    if (!is_inside) note_fault(fault, Fault::position);
    return is_inside;
  }
};

struct GatherWords {
  Picks picks;
  std::int64_t size;  ///< bytes of an element
  const void* x;
  void* y;

  ACCRUE_DEVICE void operator()(std::int64_t i) const {
    const Offsets<3> at = picks.layouts.offsets(i);
    const std::int64_t pick = picks.index[at[0]];
    const bool is_valid = picks.is_valid(pick);
    const std::int64_t from = at[2] + (is_valid ? pick : 0) * picks.step;
    store_word(y, at[1], size, is_valid ? load_word(x, from, size) : 0);
  }
};

/// All elements of dy along `dim`, one after the other: no other thread adds to theirs of dx.
template <class T>
struct AddLine {
  Picks picks;  ///< of a line's first element
  std::int64_t count, index_stride, dy_stride;
  const T* dy;
  T* dx;

  ACCRUE_DEVICE void operator()(std::int64_t i) const {
    const Offsets<3> at = picks.layouts.offsets(i);
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t pick = picks.index[at[0] + j * index_stride];
      if (!picks.is_valid(pick)) continue;
      T& sum = dx[at[2] + pick * picks.step];
      sum = sum + dy[at[1] + j * dy_stride];
    }
  }
};

}  // namespace

void launch_cuda(const Gather& args, Stream stream) {
  check_arguments(args);
  const auto [strides, step] = without_dim(args.x, args.dim);
  const Picks picks{{args.index.shape(), {args.index.strides(), args.y.strides(), strides}},
                    args.index.data<std::int64_t>(),
                    step,
                    index_limit(args.x, args.dim),
                    stream.fault};
  const GatherWords body{
      picks, size_of(args.x.dtype()), bytes_of(args.x), mutable_bytes_of(args.y)};
  launch_each("gather", args.index.numel(), body, stream);
}

void launch_cuda(const ScatterAdd& args, Stream stream) {
  check_arguments(args);
  const auto [strides, step] = without_dim(args.dx, args.dim);
  Shape lines = args.index.shape();
  const bool has_dim = lines.rank() > 0;
  const std::int64_t count = has_dim ? lines[args.dim] : 1;
  if (args.index.numel() == 0) return;
  if (has_dim) lines[args.dim] = 1;
  const Picks picks{{lines, {args.index.strides(), args.dy.strides(), strides}},
                    args.index.data<std::int64_t>(),
                    step,
                    index_limit(args.dx, args.dim),
                    stream.fault};
  visit_floating(args.dx.dtype(), args.operation, [&]<class T>(T) {
    const AddLine<T> body{picks,
                          count,
                          has_dim ? args.index.strides()[args.dim] : 0,
                          has_dim ? args.dy.strides()[args.dim] : 0,
                          args.dy.data<T>(),
                          args.dx.mutable_data<T>()};
    launch_each("scatter_add", product(lines, 0, lines.rank()), body, stream);
  });
}

}  // namespace accrue::kernels
