// Matrices: the matrices of a tensor with leading dimensions.
#pragma once

#include "accrue/core/tensor.h"
#include "accrue/kernels/matrix.h"

#include <type_traits>

namespace accrue::kernels {

/// The last two dimensions of a tensor, one matrix for each index of the others in row-major order.
template <class T>
class Matrices {
 public:
  explicit Matrices(const Tensor& x) requires(std::is_const_v<T>)
      : Matrices(x, x.data<std::remove_const_t<T>>()) {}
  /// Of a tensor that is written: T is not const.
  explicit Matrices(Tensor& x) requires(!std::is_const_v<T>) : Matrices(x, x.mutable_data<T>()) {}

  std::int64_t count() const { return product(shape_, 0, shape_.rank() - 2); }
  Matrix<T> operator[](std::int64_t index) const {
    const int rank = shape_.rank();
    T* data = data_;
    for (int d = rank - 3; d >= 0; --d) {
      data += index % shape_[d] * strides_[d];
      index /= shape_[d];
    }
    return {data, shape_[rank - 2], shape_[rank - 1], strides_[rank - 2], strides_[rank - 1]};
  }

 private:
  Matrices(const Tensor& x, T* data) : shape_(x.shape()), strides_(x.strides()), data_(data) {}

  Shape shape_, strides_;
  T* data_;
};

}  // namespace accrue::kernels
