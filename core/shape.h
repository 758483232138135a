// Shape: the sizes (or strides) of a tensor, at most 8 of them, and the rules that combine shapes.
#pragma once

#include "accrue/core/error.h"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>

namespace accrue {

inline constexpr int kMaxRank = 8;

/// A list of at most kMaxRank integers, stored in place. Rank 0 is the shape of a scalar.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes)
      : Shape(std::span(sizes.begin(), sizes.size())) {}
  /// Errors: ShapeError above rank 8.
  explicit Shape(std::span<const std::int64_t> sizes);

  int rank() const { return rank_; }
  std::int64_t operator[](int dim) const { return sizes_[static_cast<std::size_t>(dim)]; }
  std::int64_t& operator[](int dim) { return sizes_[static_cast<std::size_t>(dim)]; }
  const std::int64_t* begin() const { return sizes_.data(); }
  const std::int64_t* end() const { return sizes_.data() + rank_; }
  std::int64_t back() const { return sizes_[static_cast<std::size_t>(rank_ - 1)]; }

  void push_back(std::int64_t size);
  void insert(int dim, std::int64_t size);
  void erase(int dim);

  bool operator==(const Shape& other) const;
  /// `[2, 3]`, as error messages show it.
  std::string str() const;

 private:
  std::array<std::int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

/// Number of elements: the product of the sizes; 1 for rank 0.
/// Errors: ShapeError for a negative size or a product above 2^63 - 1 (also when another size is
/// 0).
std::int64_t checked_numel(const Shape& shape, const char* operation);

/// Product of the sizes of dimensions [begin, end) of a shape that passed checked_numel.
std::int64_t product(const Shape& shape, int begin, int end);

/// Strides (in elements) of a dense row-major tensor of this shape.
Shape contiguous_strides(const Shape& shape);

/// The shape both operands expand to: sizes are aligned at the last dimension, 1 stretches.
/// Errors: ShapeError naming the dimension when two sizes differ and neither is 1.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* operation);

/// Maps dim in [-rank, rank) to [0, rank).
/// Errors: IndexError with the valid range.
int normalize_dim(int dim, int rank, const char* operation);

}  // namespace accrue
