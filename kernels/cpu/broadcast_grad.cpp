// BroadcastGrad on the CPU: the lane program runs on an accumulator of the parameter's size.
#include "accrue/kernels/cpu/broadcast_grad.h"

#include "accrue/core/strided.h"
#include "accrue/kernels/broadcast_grad_checks.h"
#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/float_mode.h"

#include <algorithm>

namespace accrue::kernels {
namespace {

/// Strides of a dense tensor of shape `from`, expanded to `to`.
Shape expanded_strides(const Shape& from, const Shape& to) {
  const Shape dense = contiguous_strides(from);
  Shape strides = to;
  const int added = to.rank() - from.rank();
  for (int d = 0; d < to.rank(); ++d) {
    strides[d] = d < added || from[d - added] == 1 ? 0 : dense[d - added];
  }
  return strides;
}

/// Dimensions [begin, end) of a shape or its strides.
Shape part_of(const Shape& shape, int begin, int end) {
  return Shape(std::span(shape.begin() + begin, static_cast<std::size_t>(end - begin)));
}

/// The accumulator of all elements of a parameter, for interpret().
template <class T>
class ParameterTile {
 public:
  explicit ParameterTile(const BroadcastGrad<T>& args)
      : args_(args),
        numel_(product(args.shape, 0, args.shape.rank())),
        space_(Tensor::empty({numel_ * (1 + args.program.num_scratch)}, dtype_of<T>)),
        acc_(space_.mutable_data<T>()),
        row_shape_(part_of(args.a.shape(), args.row_dims, args.a.rank())),
        start_strides_(strides_of(0, args.row_dims)),
        row_strides_(strides_of(args.row_dims, args.a.rank())) {
    for_each_run<3>(row_shape_, row_strides_, [&](const StridedRun<3>& run) {
      run_ = run;
      ++runs_per_row_;
    });
  }

  void zero() { std::fill_n(acc_, numel_, T(0)); }
  void load(int slot) { std::copy_n(at(slot), numel_, acc_); }
  void close() {
    for (std::int64_t i = 0; i < numel_; ++i) acc_[i] = acc_[i] + T(0);
  }
  void merge(int slot) {
    const T* const left = at(slot);
    for (std::int64_t i = 0; i < numel_; ++i) acc_[i] = left[i] + acc_[i];
  }
  void store(int slot) { std::copy_n(acc_, numel_, at(slot)); }
  void chain(std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) chain_row(row);
  }

 private:
  static constexpr std::size_t kA = 0, kB = 1, kAcc = 2;

  /// Strides of a, b and acc along dimensions [begin, end).
  std::array<Shape, 3> strides_of(int begin, int end) const {
    const Shape& shape = args_.a.shape();
    const Shape b = args_.b.defined() ? args_.b.strides() : expanded_strides({}, shape);
    return {part_of(args_.a.strides(), begin, end),
            part_of(b, begin, end),
            part_of(expanded_strides(args_.shape, shape), begin, end)};
  }

  T* at(int slot) {
    const auto index = static_cast<std::size_t>(slot);
    if (index < args_.buffers.size()) return args_.buffers[index];
    return acc_ + (slot - std::ssize(args_.buffers) + 1) * numel_;
  }

  /// Calls body(run) for the runs of a row, whose offsets count from the row's start.
  template <class Body>
  void for_each_run_of_row(const Body& body) const {
    if (runs_per_row_ == 1) return body(run_);
    for_each_run<3>(row_shape_, row_strides_, body);
  }

  void chain_row(std::int64_t row) {
    std::array<std::int64_t, 3> start{};
    for (int d = args_.row_dims - 1; d >= 0; --d) {
      const std::int64_t size = args_.a.shape()[d];
      for (std::size_t n = 0; n < 3; ++n) start[n] += row % size * start_strides_[n][d];
      row /= size;
    }
    const T* const a = args_.a.template data<T>() + start[kA];
    if (is_zero(a)) return;
    static constexpr T kOne = 1;
    const T* const b = args_.b.defined() ? args_.b.template data<T>() + start[kB] : &kOne;
    for_each_run_of_row([&](const StridedRun<3>& run) {
      const ChainRun<T> part{run.count,
                             a + run.offset[kA],
                             b + run.offset[kB],
                             acc_ + start[kAcc] + run.offset[kAcc],
                             run.stride[kA],
                             run.stride[kB],
                             run.stride[kAcc]};
      ACCRUE_DISPATCH(chain_run, part);
    });
  }

  bool is_zero(const T* row) const {
    bool zero = true;
    for_each_run_of_row([&](const StridedRun<3>& run) {
      const T* const a = row + run.offset[kA];
      for (std::int64_t i = 0; i < run.count && zero; ++i) zero = a[i * run.stride[kA]] == T(0);
    });
    return zero;
  }

  const BroadcastGrad<T>& args_;
  std::int64_t numel_;
  Tensor space_;  // acc, then the scratch slots
  T* acc_;
  Shape row_shape_;
  std::array<Shape, 3> start_strides_, row_strides_;  // of the rows' starts, and inside a row
  StridedRun<3> run_{};                               // of every row, if it has only one
  std::int64_t runs_per_row_ = 0;
};

}  // namespace

template <class T>
void launch_cpu(const BroadcastGrad<T>& args) {
  const DefaultFloats floats;
  check_arguments(args);
  ParameterTile<T> tile(args);
  const auto& instructions = args.program.instructions;
  interpret(instructions.data(), instructions.data() + instructions.size(), tile);
}

template void launch_cpu(const BroadcastGrad<float>&);
template void launch_cpu(const BroadcastGrad<double>&);

}  // namespace accrue::kernels
