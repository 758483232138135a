// Shapes: construction, counting with checked arithmetic, strides and broadcasting.
#include "accrue/core/shape.h"

#include "accrue/tests/support/property.h"

#include <vector>

using accrue::broadcast_shapes;
using accrue::checked_numel;
using accrue::IndexError;
using accrue::normalize_dim;
using accrue::Shape;
using accrue::ShapeError;
using accrue::test::check_property;
using accrue::test::pick;

namespace {

constexpr std::int64_t kTwo40 = std::int64_t{1} << 40;
constexpr std::int64_t kTwo62 = std::int64_t{1} << 62;

}  // namespace

TEST_CASE("core.shape: rank 0 and 8 exist, rank 9 is a ShapeError") {
  CHECK(Shape().rank() == 0);
  CHECK(Shape{}.str() == "[]");
  Shape eight{1, 2, 3, 4, 5, 6, 7, 8};
  CHECK(eight.rank() == 8);
  CHECK(eight.back() == 8);
  CHECK(eight.str() == "[1, 2, 3, 4, 5, 6, 7, 8]");
  const char* message = "[shape] rank must be at most 8, got 9; merge dimensions with reshape";
  CHECK_THROWS_WITH_AS(eight.push_back(1), message, ShapeError);
  CHECK_THROWS_WITH_AS((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), message, ShapeError);
  CHECK(eight == Shape{1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("core.shape: insert and erase move the sizes behind them") {
  Shape shape{2, 4};
  shape.insert(1, 3);
  shape.insert(0, 1);
  shape.push_back(5);
  CHECK(shape == Shape{1, 2, 3, 4, 5});
  shape.erase(0);
  shape.erase(1);
  CHECK(shape == Shape{2, 4, 5});
  CHECK(shape != Shape{2, 4});
  CHECK(shape != Shape{2, 4, 6});
  CHECK(std::vector<std::int64_t>(shape.begin(), shape.end()) ==
        std::vector<std::int64_t>{2, 4, 5});
}

TEST_CASE("core.shape: the element count is checked, also beside a size of 0") {
  CHECK(checked_numel({}, "zeros") == 1);
  CHECK(checked_numel({2, 3, 4}, "zeros") == 24);
  CHECK(checked_numel({kTwo40, 0}, "zeros") == 0);
  CHECK(checked_numel({kTwo62, 1}, "zeros") == kTwo62);
  CHECK_THROWS_WITH_AS(
      checked_numel({2, -1}, "zeros"), "[zeros] sizes must be >= 0, got [2, -1]", ShapeError);
  CHECK_THROWS_AS(checked_numel({0, -1}, "zeros"), ShapeError);
  CHECK_THROWS_WITH_AS(checked_numel({kTwo40, kTwo40}, "zeros"),
                       "[zeros] the product of the sizes must fit in 63 bits, got "
                       "[1099511627776, 1099511627776]",
                       ShapeError);
  CHECK_THROWS_AS(checked_numel({0, kTwo62, kTwo62}, "zeros"), ShapeError);
  CHECK_THROWS_AS(checked_numel({kTwo62, kTwo62, 0}, "zeros"), ShapeError);
  CHECK_THROWS_AS(checked_numel({kTwo62, 2}, "zeros"), ShapeError);
}

TEST_CASE("core.shape: product multiplies a range of dimensions") {
  CHECK(accrue::product({2, 3, 4}, 0, 3) == 24);
  CHECK(accrue::product({2, 3, 4}, 1, 2) == 3);
  CHECK(accrue::product({2, 3, 4}, 2, 2) == 1);
}

TEST_CASE("core.shape: contiguous strides are row-major and treat 0 as 1") {
  CHECK(accrue::contiguous_strides({}) == Shape{});
  CHECK(accrue::contiguous_strides({2, 3, 4}) == Shape{12, 4, 1});
  CHECK(accrue::contiguous_strides({2, 0, 4}) == Shape{4, 4, 1});
}

TEST_CASE(
    "core.shape: sizes of 1 stretch, other differences are a ShapeError naming the dimension") {
  CHECK(broadcast_shapes({2, 1}, {3}, "add") == Shape{2, 3});
  CHECK(broadcast_shapes({1, 3}, {0, 3}, "add") == Shape{0, 3});
  CHECK(broadcast_shapes({}, {2, 3}, "add") == Shape{2, 3});
  CHECK_THROWS_WITH_AS(broadcast_shapes({2, 3}, {2, 4}, "add"),
                       "[add] shapes must broadcast, got [2, 3] and [2, 4], which differ at "
                       "dimension -1 (3 and 4)",
                       ShapeError);
  CHECK_THROWS_WITH_AS(broadcast_shapes({2, 3}, {0, 3}, "add"),
                       "[add] shapes must broadcast, got [2, 3] and [0, 3], which differ at "
                       "dimension -2 (2 and 0)",
                       ShapeError);
}

TEST_CASE("core.shape: broadcasting is symmetric and equals the definition") {
  check_property("broadcasts of two random shapes", 2000, [] {
    Shape a, b;
    for (std::int64_t d = pick(0, 4); d > 0; --d) a.push_back(pick(0, 3));
    for (std::int64_t d = pick(0, 4); d > 0; --d) b.push_back(pick(0, 3));
    Shape expected;
    bool fits = true;
    const int rank = std::max(a.rank(), b.rank());
    for (int d = 0; d < rank; ++d) {
      const int i = d - (rank - a.rank()), j = d - (rank - b.rank());
      const std::int64_t x = i < 0 ? 1 : a[i], y = j < 0 ? 1 : b[j];
      fits = fits && (x == y || x == 1 || y == 1);
      expected.push_back(x == 1 ? y : x);
    }
    if (fits) {
      RC_ASSERT(broadcast_shapes(a, b, "add") == expected);
      RC_ASSERT(broadcast_shapes(b, a, "add") == expected);
    } else {
      RC_ASSERT_THROWS_AS(broadcast_shapes(a, b, "add"), ShapeError);
      RC_ASSERT_THROWS_AS(broadcast_shapes(b, a, "add"), ShapeError);
    }
  });
}

TEST_CASE("core.shape: dimensions count from the end when negative") {
  CHECK(normalize_dim(1, 2, "sum") == 1);
  CHECK(normalize_dim(-2, 2, "sum") == 0);
  CHECK(normalize_dim(-1, 0, "sum") == 0);
  CHECK_THROWS_WITH_AS(
      normalize_dim(2, 2, "sum"), "[sum] dim must lie in [-2, 1], got 2", IndexError);
  CHECK_THROWS_AS(normalize_dim(-3, 2, "sum"), IndexError);
  CHECK_THROWS_AS(normalize_dim(1, 0, "sum"), IndexError);
}
