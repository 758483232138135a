// Gradients of broadcast parameters, and merges of finished sums, on CUDA: a thread for each
// element of the parameter runs the lane program.
#include "accrue/kernels/broadcast_grad_checks.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/cuda/live_rows.cuh"
#include "accrue/kernels/cuda/program_memory.h"
#include "accrue/kernels/scalar/float_ops.h"

namespace accrue::kernels {
namespace {

using namespace cuda;

constexpr int kGradThreads = 64;  // few, since parameters are small: more blocks work at once

constexpr std::size_t kA = 0, kB = 1, kRow = 2;

/// What the dimensions are worth in a, in b and in row numbers: those the parameter has, and the
/// others that count rows or lie in a row.
struct BroadcastDims {
  Layouts<3> kept, rows;
  Layouts<2> inner;
  std::int64_t num_rows = 0;

  /// The free row that is the first at or behind `bound` for the element that starts at `start`.
  ACCRUE_DEVICE std::int64_t first_row(std::int64_t bound, std::int64_t start) const {
    if (rows.count == num_rows) return bound;
    std::int64_t low = 0, high = rows.count;
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (start + rows.offsets(middle)[kRow] < bound) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

template <class T>
struct Gradient {
  BroadcastDims dims;
  const T *a = nullptr, *b = nullptr;
  const std::uint8_t* live = nullptr;  ///< a byte for each row
  const LaneInstruction* instructions = nullptr;
  std::int64_t num_instructions = 0;
  T* const* slots = nullptr;
  bool is_matrix = false;  ///< an element takes one product from each row, at equal distances
};

/// The accumulator of element p, for interpret().
template <class T>
struct ElementTile {
  const Gradient<T>& gradient;
  std::int64_t p;
  T acc = 0;

  ACCRUE_DEVICE void zero() { acc = T(0); }
  ACCRUE_DEVICE void load(int slot) { acc = gradient.slots[slot][p]; }
  ACCRUE_DEVICE void close() { acc = acc + T(0); }
  ACCRUE_DEVICE void merge(int slot) { acc = gradient.slots[slot][p] + acc; }
  ACCRUE_DEVICE void store(int slot) { gradient.slots[slot][p] = acc; }
  ACCRUE_DEVICE void chain(std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    const Offsets<3> start = gradient.dims.kept.offsets(p);
    const T* const a = gradient.a + start[kA];
    const T* const b = gradient.b + start[kB];
    if (gradient.is_matrix) return chain_matrix(a, b, begin, end);
    const BroadcastDims& dims = gradient.dims;
    const std::int64_t last = dims.first_row(end, start[kRow]);
    for (std::int64_t f = dims.first_row(begin, start[kRow]); f < last; ++f) {
      const Offsets<3> row = dims.rows.offsets(f);
      if (!gradient.live[start[kRow] + row[kRow]]) continue;
      for (std::int64_t m = 0; m < dims.inner.count; ++m) {
        const Offsets<2> at = dims.inner.offsets(m);
        acc = scalar::fma(a[row[kA] + at[kA]], b[row[kB] + at[kB]], acc);
      }
    }
  }
  /// Reads dead rows too, so that loads need not wait for `live`.
  ACCRUE_DEVICE void chain_matrix(const T* a, const T* b, std::int64_t begin, std::int64_t end) {
    const std::int64_t a_stride = gradient.dims.rows.stride[kA][0];
    const std::int64_t b_stride = gradient.dims.rows.stride[kB][0];
    ACCRUE_UNROLL_BY(4)
    for (std::int64_t row = begin; row < end; ++row) {
      const T next = scalar::fma(a[row * a_stride], b[row * b_stride], acc);
      acc = gradient.live[row] ? next : acc;
    }
  }
};

template <class T>
ACCRUE_KERNEL(kGradThreads)
void gradient_kernel(ACCRUE_PARAMETER Gradient<T> gradient) {
  const std::int64_t p = std::int64_t{block_x()} * kGradThreads + thread_index();
  if (p >= gradient.dims.kept.count) return;
  ElementTile<T> tile{gradient, p};
  interpret(gradient.instructions, gradient.instructions + gradient.num_instructions, tile);
}

/// Runs the program on the elements of the parameter.
template <class Args, class T>
void run_program(const Args& args, Gradient<T> gradient, Stream stream) {
  const std::int64_t count = gradient.dims.kept.count;
  const ProgramMemory<T, T*> program(
      args.program, args.buffers, count, stream, [](T* slot) { return slot; });
  gradient.slots = program.slots();
  gradient.instructions = program.instructions();
  gradient.num_instructions = std::ssize(args.program.instructions);
  launch({.name = args.kName,
          .grid_x = (count + kGradThreads - 1) / kGradThreads,
          .threads = kGradThreads,
          .stream = stream},
         gradient_kernel<T>,
         gradient);
}

/// A group of dimensions, as Layouts takes them.
template <std::size_t N>
struct Group {
  Shape shape;
  std::array<Shape, N> strides;

  void push_back(std::int64_t size, const std::array<std::int64_t, N>& steps) {
    shape.push_back(size);
    for (std::size_t n = 0; n < N; ++n) strides[n].push_back(steps[n]);
  }
  Layouts<N> layouts() const { return {shape, strides}; }
};

template <class T>
BroadcastDims split(const BroadcastGrad<T>& args) {
  const Shape& shape = args.a.shape();
  const int added = shape.rank() - args.shape.rank();
  Group<3> kept, rows;
  Group<2> inner;
  for (int d = 0; d < shape.rank(); ++d) {
    const bool counts_rows = d < args.row_dims;
    const std::int64_t a = args.a.strides()[d];
    const std::int64_t b = args.b.defined() ? args.b.strides()[d] : 0;
    const std::int64_t row = counts_rows ? product(shape, d + 1, args.row_dims) : 0;
    if (d >= added && args.shape[d - added] != 1) {
      kept.push_back(shape[d], {a, b, row});
    } else if (counts_rows) {
      rows.push_back(shape[d], {a, b, row});
    } else {
      inner.push_back(shape[d], {a, b});
    }
  }
  return {kept.layouts(), rows.layouts(), inner.layouts(), product(shape, 0, args.row_dims)};
}

template <class T>
void mark_live_rows(const BroadcastGrad<T>& args, std::uint8_t* live, Stream stream) {
  Group<1> rows, inner;
  for (int d = 0; d < args.a.rank(); ++d) {
    Group<1>& group = d < args.row_dims ? rows : inner;
    group.push_back(args.a.shape()[d], std::array{args.a.strides()[d]});
  }
  find_live_rows(args.a.template data<T>(), rows.layouts(), inner.layouts(), live, stream);
}

template <class T>
void launch_gradient(const BroadcastGrad<T>& args, Stream stream) {
  check_arguments(args);
  Gradient<T> gradient{.dims = split(args), .a = args.a.template data<T>()};
  const BroadcastDims& dims = gradient.dims;
  if (dims.kept.count == 0) return;
  const T one = 1;
  Workspace ones(sizeof(T), stream), live(static_cast<std::size_t>(dims.num_rows), stream);
  ones.upload(&one, sizeof(T));
  mark_live_rows(args, live.as<std::uint8_t>(), stream);
  gradient.b = args.b.defined() ? args.b.template data<T>() : ones.as<T>();
  gradient.live = live.as<std::uint8_t>();
  gradient.is_matrix =
      dims.inner.count == 1 && dims.rows.rank <= 1 && dims.rows.count == dims.num_rows;
  run_program(args, gradient, stream);
}

/// A gradient whose chains have no rows.
template <class T>
void merge(const LaneMerges<T>& args, Stream stream) {
  Gradient<T> gradient;
  gradient.dims.kept = Layouts<3>({args.count}, {Shape{1}, Shape{0}, Shape{0}});
  if (args.count > 0) run_program(args, gradient, stream);
}

}  // namespace

void launch_cuda(const BroadcastGrad<float>& args, Stream stream) { launch_gradient(args, stream); }
void launch_cuda(const BroadcastGrad<double>& args, Stream stream) {
  launch_gradient(args, stream);
}
void launch_cuda(const LaneMerges<float>& args, Stream stream) { merge(args, stream); }
void launch_cuda(const LaneMerges<double>& args, Stream stream) { merge(args, stream); }

}  // namespace accrue::kernels
