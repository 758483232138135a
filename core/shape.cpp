#include "accrue/core/shape.h"

#include <algorithm>

namespace accrue {

Shape::Shape(std::span<const std::int64_t> sizes) {
  ACCRUE_CHECK(sizes.size() <= static_cast<std::size_t>(kMaxRank),
               ShapeError,
               "shape",
               "rank must be at most ",
               kMaxRank,
               ", got ",
               sizes.size(),
               "; merge dimensions with reshape");
  rank_ = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
}

void Shape::push_back(std::int64_t size) { insert(rank_, size); }

void Shape::insert(int dim, std::int64_t size) {
  ACCRUE_CHECK(rank_ < kMaxRank,
               ShapeError,
               "shape",
               "rank must be at most ",
               kMaxRank,
               ", got ",
               rank_ + 1,
               "; merge dimensions with reshape");
  std::copy_backward(sizes_.begin() + dim, sizes_.begin() + rank_, sizes_.begin() + rank_ + 1);
  sizes_[static_cast<std::size_t>(dim)] = size;
  ++rank_;
}

void Shape::erase(int dim) {
  std::copy(sizes_.begin() + dim + 1, sizes_.begin() + rank_, sizes_.begin() + dim);
  --rank_;
}

bool Shape::operator==(const Shape& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

std::string Shape::str() const {
  std::string out = "[";
  for (int d = 0; d < rank_; ++d) out += (d ? ", " : "") + std::to_string((*this)[d]);
  return out + "]";
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.str(); }

std::int64_t checked_numel(const Shape& shape, const char* operation) {
  std::int64_t nonzero_product = 1;
  bool empty = false;
  for (std::int64_t size : shape) {
    ACCRUE_CHECK(size >= 0, ShapeError, operation, "sizes must be >= 0, got ", shape);
    empty |= size == 0;
    ACCRUE_CHECK(size == 0 || !__builtin_mul_overflow(nonzero_product, size, &nonzero_product),
                 ShapeError,
                 operation,
                 "the product of the sizes must fit in 63 bits, got ",
                 shape);
  }
  return empty ? 0 : nonzero_product;
}

std::int64_t product(const Shape& shape, int begin, int end) {
  std::int64_t result = 1;
  for (int d = begin; d < end; ++d) result *= shape[d];
  return result;
}

Shape contiguous_strides(const Shape& shape) {
  Shape strides = shape;
  std::int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= std::max<std::int64_t>(shape[d], 1);
  }
  return strides;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* operation) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape result = longer;
  const int offset = longer.rank() - shorter.rank();
  for (int d = 0; d < shorter.rank(); ++d) {
    const std::int64_t x = longer[d + offset];
    const std::int64_t y = shorter[d];
    ACCRUE_CHECK(x == y || x == 1 || y == 1,
                 ShapeError,
                 operation,
                 "shapes must broadcast, got ",
                 a,
                 " and ",
                 b,
                 ", which differ at dimension ",
                 d - shorter.rank(),
                 " (",
                 x,
                 " and ",
                 y,
                 ")");
    if (x == 1) result[d + offset] = y;
  }
  return result;
}

int normalize_dim(int dim, int rank, const char* operation) {
  const int limit = std::max(rank, 1);
  ACCRUE_CHECK(dim >= -limit && dim < limit,
               IndexError,
               operation,
               "dim must lie in [",
               -limit,
               ", ",
               limit - 1,
               "], got ",
               dim);
  return dim < 0 ? dim + limit : dim;
}

}  // namespace accrue
