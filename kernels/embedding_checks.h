// What the arguments of kernels/embedding.h must fulfil on every device.
#pragma once

#include "accrue/core/error.h"
#include "accrue/kernels/embedding.h"

namespace accrue::kernels {

template <class T>
void check_table_rows(const char* operation, const Matrix<T>& m, std::int64_t cols) {
  ACCRUE_CHECK(m.cols == cols && (m.col_stride == 1 || m.cols <= 1),
               ShapeError,
               operation,
               "rows must be dense and of one width, got width ",
               m.cols,
               " for ",
               cols,
               " and stride ",
               m.col_stride,
               "; pass a contiguous copy");
}

template <class T>
void check_arguments(const EmbeddingForward<T>& args) {
  check_table_rows(args.kName, args.table, args.y.cols);
  check_table_rows(args.kName, args.y, args.y.cols);
}

template <class T>
void check_arguments(const EmbeddingGrad<T>& args) {
  check_table_rows(args.kName, args.dy, args.dy.cols);
  check_lane_program(args.program, args.kName, args.dy.rows, std::ssize(args.buffers));
}

}  // namespace accrue::kernels
