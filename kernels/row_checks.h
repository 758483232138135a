// What the arguments of the row kernels must fulfil on every device.
#pragma once

#include "accrue/core/error.h"
#include "accrue/kernels/cross_entropy.h"
#include "accrue/kernels/layer_norm.h"
#include "accrue/kernels/mse.h"
#include "accrue/kernels/softmax.h"

namespace accrue::kernels {

/// All matrices must be as large as the first, with rows of unit stride.
template <class First, class... Others>
void check_rows(const char* operation, const First& first, const Others&... others) {
  const auto check = [&](const auto& m) {
    ACCRUE_CHECK(m.rows == first.rows && m.cols == first.cols,
                 ShapeError,
                 operation,
                 "operands must have one shape, got [",
                 first.rows,
                 ", ",
                 first.cols,
                 "] and [",
                 m.rows,
                 ", ",
                 m.cols,
                 "]; reshape or expand one");
    ACCRUE_CHECK(m.col_stride == 1 || m.cols <= 1,
                 ShapeError,
                 operation,
                 "rows must have stride 1, got ",
                 m.col_stride,
                 "; pass a contiguous copy");
  };
  check(first);
  (check(others), ...);
}

template <class T>
void check_arguments(const CrossEntropyInputs<T>& in) {
  constexpr const char* kName = CrossEntropyForward<T>::kName;
  check_rows(kName, in.logits);
  ACCRUE_CHECK(in.logits.cols >= 1 || in.logits.rows == 0,
               ShapeError,
               kName,
               "logits must have at least one class, got [",
               in.logits.rows,
               ", 0]; check the last layer");
  ACCRUE_CHECK(in.label_smoothing >= 0 && in.label_smoothing <= 1,
               ValueError,
               kName,
               "label_smoothing must lie in [0, 1], got ",
               in.label_smoothing,
               "; pass a share such as 0.1");
}

template <class T>
void check_arguments(const CrossEntropyForward<T>& args) {
  check_arguments(args.in);
}

template <class T>
void check_arguments(const CrossEntropyBackward<T>& args) {
  check_rows(args.kName, args.in.logits, args.dlogits);
  check_arguments(args.in);
}

template <class T>
void check_arguments(const LayerNormForward<T>& args) {
  check_rows(args.kName, args.x, args.y);
}

template <class T>
void check_arguments(const LayerNormBackward<T>& args) {
  check_rows(args.kName, args.x, args.dy);
  if (args.dx.data != nullptr) check_rows(args.kName, args.x, args.dx);
  if (args.n.data != nullptr) check_rows(args.kName, args.x, args.n);
}

template <class T>
void check_arguments(const MseForward<T>& args) {
  check_rows(args.kName, args.x, args.y);
}

template <class T>
void check_arguments(const MseBackward<T>& args) {
  check_rows(args.kName, args.x, args.y);
  if (args.dx.data != nullptr) check_rows(args.kName, args.x, args.dx);
  if (args.dy.data != nullptr) check_rows(args.kName, args.x, args.dy);
}

template <class T>
void check_arguments(const SoftmaxForward<T>& args) {
  check_rows(args.kName, args.x, args.y);
}

template <class T>
void check_arguments(const SoftmaxBackward<T>& args) {
  check_rows(args.kName, args.y, args.dy, args.dx);
}

}  // namespace accrue::kernels
