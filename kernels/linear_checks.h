// What the arguments of kernels/linear.h must fulfil on every device.
#pragma once

#include "accrue/core/error.h"
#include "accrue/kernels/linear.h"

namespace accrue::kernels {

template <class T>
void check_shape(
    const char* operation, const char* what, Matrix<T> m, std::int64_t rows, std::int64_t cols) {
  ACCRUE_CHECK(m.rows == rows && m.cols == cols,
               ShapeError,
               operation,
               what,
               " must be [",
               rows,
               ", ",
               cols,
               "], got [",
               m.rows,
               ", ",
               m.cols,
               "]; check the views passed to the kernel");
}

template <class T>
void check_output(const char* operation, Matrix<T> out) {
  ACCRUE_CHECK(out.col_stride == 1 || out.cols <= 1,
               ShapeError,
               operation,
               "the output must have col_stride 1, got ",
               out.col_stride,
               "; write to a contiguous tensor and copy");
}

template <class T>
void check_arguments(const LinearForward<T>& args) {
  check_shape(args.kName, "w", args.w, args.w.rows, args.x.cols);
  check_shape(args.kName, "y", args.y, args.x.rows, args.w.rows);
  check_output(args.kName, args.y);
}

template <class T>
void check_arguments(const LinearInputGrad<T>& args) {
  check_shape(args.kName, "w", args.w, args.dy.cols, args.w.cols);
  check_shape(args.kName, "dx", args.dx, args.dy.rows, args.w.cols);
  check_output(args.kName, args.dx);
}

template <class T>
void check_arguments(const Matmul<T>& args) {
  check_shape(args.kName, "b", args.b, args.a.cols, args.b.cols);
  check_shape(args.kName, "c", args.c, args.a.rows, args.b.cols);
  check_output(args.kName, args.c);
}

template <class T>
void check_arguments(const LinearWeightGrad<T>& args) {
  check_shape(args.kName, "x", args.x, args.dy.rows, args.x.cols);
  check_lane_program(args.program, args.kName, args.dy.rows, std::ssize(args.buffers));
}

template <class T>
void check_arguments(const LinearBiasGrad<T>& args) {
  check_lane_program(args.program, args.kName, args.dy.rows, std::ssize(args.buffers));
}

}  // namespace accrue::kernels
