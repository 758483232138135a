// Matrix: a borrowed two-dimensional view with two strides, what matrix kernels receive.
#pragma once

#include "accrue/core/host_device.h"

#include <cstdint>
#include <type_traits>

namespace accrue::kernels {

/// A [rows, cols] view: element (i, j) is data[i * row_stride + j * col_stride].
///
/// Borrows its memory. Strides count elements and may be zero (broadcast) or any other value.
template <class T>
struct Matrix {
  T* data = nullptr;
  std::int64_t rows = 0, cols = 0, row_stride = 0, col_stride = 1;

  ACCRUE_HD T& operator()(std::int64_t i, std::int64_t j) const {
    return data[i * row_stride + j * col_stride];
  }
  ACCRUE_HD Matrix transposed() const { return {data, cols, rows, col_stride, row_stride}; }
  /// A writable view converts to a read-only one.
  ACCRUE_HD operator Matrix<const T>() const requires(!std::is_const_v<T>) {
    return {data, rows, cols, row_stride, col_stride};
  }
};

/// The contiguous row-major view of `rows` x `cols` elements at `data`.
template <class T>
Matrix<T> row_major(T* data, std::int64_t rows, std::int64_t cols) {
  return {data, rows, cols, cols, 1};
}

}  // namespace accrue::kernels
