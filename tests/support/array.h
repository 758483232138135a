// Array: a dense float array and its indices, what the references of operations compute with.
#pragma once

#include "accrue/core/tensor.h"

#include <algorithm>
#include <vector>

namespace accrue::test {

struct Array {
  Shape shape;
  std::vector<float> values;

  std::int64_t numel() const { return static_cast<std::int64_t>(values.size()); }
  float& operator[](std::int64_t i) { return values[static_cast<std::size_t>(i)]; }
  float operator[](std::int64_t i) const { return values[static_cast<std::size_t>(i)]; }
};
using Arrays = std::vector<Array>;

inline std::int64_t numel(const Shape& shape) { return product(shape, 0, shape.rank()); }

inline Array zeros(const Shape& shape) {
  return {shape, std::vector<float>(static_cast<std::size_t>(numel(shape)))};
}

/// The elements of `x`, whatever its layout and type.
inline Array array_of(const Tensor& x) {
  return {x.shape(), x.to(DType::float32).to_vector<float>()};
}
inline Tensor tensor_of(const Array& x) { return Tensor::from(x.values, x.shape); }

/// The index of element `i` in row-major order.
inline Shape index_of(std::int64_t i, const Shape& shape) {
  Shape index = shape;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    index[d] = i % shape[d];
    i /= shape[d];
  }
  return index;
}

/// Where the element at `index` of a broadcast result comes from in an operand of shape `shape`.
inline std::int64_t element_at(const Shape& index, const Shape& shape) {
  const int added = index.rank() - shape.rank();
  std::int64_t element = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    element = element * shape[d] + (shape[d] == 1 ? 0 : index[d + added]);
  }
  return element;
}

/// Entries [begin, end) of dimension 0.
inline Array entries(const Array& x, std::int64_t begin, std::int64_t end) {
  const std::int64_t size = product(x.shape, 1, x.shape.rank());
  Array result{x.shape, {x.values.begin() + begin * size, x.values.begin() + end * size}};
  result.shape[0] = end - begin;
  return result;
}

}  // namespace accrue::test
