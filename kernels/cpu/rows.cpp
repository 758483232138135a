// The row kernels on the CPU: checks, then rows dealt to threads.
#include "accrue/core/error.h"
#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/parallel.h"
#include "accrue/kernels/cpu/row_kernels.h"
#include "accrue/kernels/row_checks.h"

namespace accrue::kernels {
namespace {

template <class Args>
void for_rows(const Args& args, std::int64_t num_rows, std::int64_t cols) {
  parallel_for(num_rows, row_grain(cols), [&](std::int64_t begin, std::int64_t end) {
    ACCRUE_DISPATCH(run_rows, args, RowRange{begin, end});
  });
}

template <class T>
void check_classes(const CrossEntropyInputs<T>& in) {
  check_targets(in.target, in.logits.rows, in.logits.cols, in.ignore_index);
}

}  // namespace

void check_targets(const std::int64_t* target,
                   std::int64_t count,
                   std::int64_t num_classes,
                   std::int64_t ignore_index) {
  for (std::int64_t n = 0; n < count; ++n) {
    const std::int64_t t = target[n];
    ACCRUE_CHECK((t >= 0 && t < num_classes) || t == ignore_index,
                 IndexError,
                 "cross_entropy",
                 "target must lie in [0, ",
                 num_classes,
                 "), got ",
                 t,
                 " at index ",
                 n,
                 "; check the label encoding or set ignore_index (now ",
                 ignore_index,
                 ")");
  }
}

template <class T>
void launch_cpu(const CrossEntropyForward<T>& args) {
  check_arguments(args);
  check_classes(args.in);
  for_rows(args, args.in.logits.rows, args.in.logits.cols);
}

template <class T>
void launch_cpu(const CrossEntropyBackward<T>& args) {
  check_arguments(args);
  check_classes(args.in);
  for_rows(args, args.in.logits.rows, args.in.logits.cols);
}

template <class T>
void launch_cpu(const LayerNormForward<T>& args) {
  check_arguments(args);
  for_rows(args, args.x.rows, args.x.cols);
}

template <class T>
void launch_cpu(const LayerNormBackward<T>& args) {
  check_arguments(args);
  for_rows(args, args.x.rows, args.x.cols);
}

template <class T>
void launch_cpu(const MseForward<T>& args) {
  check_arguments(args);
  for_rows(args, args.x.rows, args.x.cols);
}

template <class T>
void launch_cpu(const MseBackward<T>& args) {
  check_arguments(args);
  for_rows(args, args.x.rows, args.x.cols);
}

template <class T>
void launch_cpu(const SoftmaxForward<T>& args) {
  check_arguments(args);
  for_rows(args, args.x.rows, args.x.cols);
}

template <class T>
void launch_cpu(const SoftmaxBackward<T>& args) {
  check_arguments(args);
  for_rows(args, args.y.rows, args.y.cols);
}

template <class T>
void launch_cpu(const RowSum<T>& args) {
  for_rows(args, args.x.rows, args.x.cols);
}

template void launch_cpu(const CrossEntropyForward<float>&);
template void launch_cpu(const CrossEntropyForward<double>&);
template void launch_cpu(const CrossEntropyBackward<float>&);
template void launch_cpu(const CrossEntropyBackward<double>&);
template void launch_cpu(const LayerNormForward<float>&);
template void launch_cpu(const LayerNormForward<double>&);
template void launch_cpu(const LayerNormBackward<float>&);
template void launch_cpu(const LayerNormBackward<double>&);
template void launch_cpu(const MseForward<float>&);
template void launch_cpu(const MseForward<double>&);
template void launch_cpu(const MseBackward<float>&);
template void launch_cpu(const MseBackward<double>&);
template void launch_cpu(const SoftmaxForward<float>&);
template void launch_cpu(const SoftmaxForward<double>&);
template void launch_cpu(const SoftmaxBackward<float>&);
template void launch_cpu(const SoftmaxBackward<double>&);
template void launch_cpu(const RowSum<float>&);
template void launch_cpu(const RowSum<double>&);

}  // namespace accrue::kernels
