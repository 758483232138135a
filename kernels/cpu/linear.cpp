// The linear layer's kernels: each is one gemm() whose program states the order of the sum.
#include "accrue/kernels/linear.h"

#include "accrue/kernels/cpu/float_mode.h"
#include "accrue/kernels/cpu/gemm.h"
#include "accrue/kernels/linear_checks.h"

#include <vector>

namespace accrue::kernels {
namespace {

/// c = a b, plus a bias per column unless it is null: one chain over k per element.
template <class T>
void multiply(Matrix<const T> a, Matrix<const T> b, const T* bias, Matrix<T> c) {
  const LaneInstruction instructions[] = {LaneInstruction::zero(),
                                          LaneInstruction::chain(0, a.cols),
                                          LaneInstruction::merge(1),
                                          LaneInstruction::store(0)};
  const LaneInstruction without_bias[] = {
      instructions[0], instructions[1], LaneInstruction::store(0)};
  // The bias is a slot that the program only reads.
  const GemmSlot<T> buffers[] = {{c.data, c.row_stride}, {const_cast<T*>(bias), 0}};
  if (bias) {
    gemm<T>({a, b, buffers, {instructions, 2, 0}});
  } else {
    gemm<T>({a, b, {buffers, 1}, {without_bias, 1, 0}});
  }
}

/// A byte per row of dy, 0 where all elements are zero; null when no row is.
template <class T>
const std::uint8_t* live_rows(Matrix<const T> dy) {
  const auto is_live = [&](std::int64_t n) {
    for (std::int64_t o = 0; o < dy.cols; ++o)
      if (dy(n, o) != T(0)) return true;
    return false;
  };
  std::int64_t n = 0;
  while (n < dy.rows && is_live(n)) ++n;
  if (n == dy.rows) return nullptr;
  thread_local std::vector<std::uint8_t> live;
  live.assign(static_cast<std::size_t>(dy.rows), 1);
  for (; n < dy.rows; ++n) live[static_cast<std::size_t>(n)] = is_live(n);
  return live.data();
}

/// Runs a parameter's program over the rows of dy: buffers [a.rows, b.cols], summed index n.
template <class T, class Args>
void accumulate(const Args& args, Matrix<const T> a, Matrix<const T> b) {
  const DefaultFloats floats;
  check_arguments(args);
  constexpr std::size_t kFew = 16;
  GemmSlot<T> few[kFew];
  std::vector<GemmSlot<T>> many(args.buffers.size() > kFew ? args.buffers.size() : 0);
  GemmSlot<T>* const buffers = many.empty() ? few : many.data();
  for (std::size_t i = 0; i < args.buffers.size(); ++i) buffers[i] = {args.buffers[i], b.cols};
  gemm<T>({a, b, {buffers, args.buffers.size()}, args.program, live_rows(args.dy)});
}

}  // namespace

template <class T>
void launch_cpu(const LinearForward<T>& args) {
  check_arguments(args);
  multiply(args.x, args.w.transposed(), args.bias, args.y);
}

template <class T>
void launch_cpu(const LinearInputGrad<T>& args) {
  check_arguments(args);
  multiply<T>(args.dy, args.w, nullptr, args.dx);
}

template <class T>
void launch_cpu(const Matmul<T>& args) {
  check_arguments(args);
  multiply<T>(args.a, args.b, nullptr, args.c);
}

template <class T>
void launch_cpu(const LinearWeightGrad<T>& args) {
  accumulate<T>(args, args.dy.transposed(), args.x);
}

template <class T>
void launch_cpu(const LinearBiasGrad<T>& args) {
  static const T one = 1;
  accumulate<T>(args, Matrix<const T>{&one, 1, args.dy.rows, 0, 0}, args.dy);
}

template void launch_cpu(const LinearForward<float>&);
template void launch_cpu(const LinearForward<double>&);
template void launch_cpu(const LinearInputGrad<float>&);
template void launch_cpu(const LinearInputGrad<double>&);
template void launch_cpu(const LinearWeightGrad<float>&);
template void launch_cpu(const LinearWeightGrad<double>&);
template void launch_cpu(const LinearBiasGrad<float>&);
template void launch_cpu(const LinearBiasGrad<double>&);
template void launch_cpu(const Matmul<float>&);
template void launch_cpu(const Matmul<double>&);

}  // namespace accrue::kernels
