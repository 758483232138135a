// Tensors as the row matrices that row kernels take.
#pragma once

#include "accrue/core/tensor.h"
#include "accrue/kernels/matrix.h"

namespace accrue {

/// A dense tensor seen as rows along its last dimension; a rank-0 tensor is one row of one.
inline Shape row_shape(const Shape& shape) {
  if (shape.rank() == 0) return {1, 1};
  return {product(shape, 0, shape.rank() - 1), shape.back()};
}

template <class T>
kernels::Matrix<const T> row_matrix(const Tensor& dense) {
  const Shape rows = row_shape(dense.shape());
  return {dense.data<T>(), rows[0], rows[1], rows[1], 1};
}

template <class T>
kernels::Matrix<T> mutable_row_matrix(Tensor& dense) {
  const Shape rows = row_shape(dense.shape());
  return kernels::row_major(dense.mutable_data<T>(), rows[0], rows[1]);
}

/// A [rows, columns] tensor with its strides.
template <class T>
kernels::Matrix<const T> matrix_of(const Tensor& x) {
  return {x.data<T>(), x.shape()[0], x.shape()[1], x.strides()[0], x.strides()[1]};
}

/// The distance of a row loss's gradients: 0 between those of an expanded scalar.
inline std::int64_t row_stride(const Tensor& dloss) {
  return dloss.numel() > 1 ? dloss.strides()[0] : 1;
}

}  // namespace accrue
