// for_each_run against naive loops.
#include "accrue/core/strided.h"

#include "accrue/tests/support/property.h"

#include <array>
#include <vector>

using accrue::Shape;
using accrue::StridedRun;
using accrue::test::check_property;
using accrue::test::pick;

namespace {

using Offsets = std::vector<std::array<std::int64_t, 2>>;

void walk(const Shape& shape,
          const std::array<Shape, 2>& strides,
          int dim,
          std::array<std::int64_t, 2> offset,
          Offsets& out) {
  if (dim == shape.rank()) {
    out.push_back(offset);
    return;
  }
  for (std::int64_t i = 0; i < shape[dim]; ++i) {
    walk(shape,
         strides,
         dim + 1,
         {offset[0] + i * strides[0][dim], offset[1] + i * strides[1][dim]},
         out);
  }
}

struct Runs {
  Offsets offsets;
  int count = 0;
};

Runs runs_of(const Shape& shape, const std::array<Shape, 2>& strides) {
  Runs result;
  accrue::for_each_run<2>(shape, strides, [&](const StridedRun<2>& run) {
    ++result.count;
    for (std::int64_t i = 0; i < run.count; ++i) {
      result.offsets.push_back(
          {run.offset[0] + i * run.stride[0], run.offset[1] + i * run.stride[1]});
    }
  });
  return result;
}

}  // namespace

TEST_CASE("core.strided: the runs visit what nested loops visit, in the same order") {
  check_property("shapes with random strides of two operands", 3000, [] {
    Shape shape;
    std::array<Shape, 2> strides;
    for (std::int64_t d = pick(0, 5); d > 0; --d) {
      shape.push_back(pick(0, 4));
      for (Shape& steps : strides) steps.push_back(pick(-3, 12));
    }
    Offsets expected;
    walk(shape, strides, 0, {0, 0}, expected);
    RC_ASSERT(runs_of(shape, strides).offsets == expected);
  });
}

TEST_CASE("core.strided: dimensions that lie dense in each other become one run") {
  const Shape shape{2, 1, 3, 4};
  const Shape dense{12, 99, 4, 1};
  CHECK(runs_of(shape, {dense, dense}).count == 1);
  CHECK(runs_of(shape, {dense, Shape{24, 0, 8, 2}}).count == 1);
  CHECK(runs_of(shape, {dense, Shape{12, 0, 4, 2}}).count == 6);
  CHECK(runs_of({}, {Shape{}, Shape{}}).count == 1);
  CHECK(runs_of({3, 0}, {Shape{1, 1}, Shape{1, 1}}).count == 0);
}

TEST_CASE("core.strided: offsets and counts above 2^32 are exact") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  std::int64_t total = 0, last = 0;
  accrue::for_each_run<1>(Shape{3, kHuge}, {Shape{2 * kHuge, 1}}, [&](const StridedRun<1>& run) {
    total += run.count;
    last = run.offset[0] + (run.count - 1) * run.stride[0];
  });
  CHECK(total == 3 * kHuge);
  CHECK(last == 5 * kHuge - 1);
}

TEST_CASE("core.strided: a copied run moves elements of 1, 4 and 8 bytes") {
  for (const std::int64_t size : {1, 4, 8}) {
    std::vector<std::byte> in(static_cast<std::size_t>(20 * size));
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::byte>(i + 1);
    for (const std::int64_t step : {1, 2, 3}) {
      std::vector<std::byte> out(in.size()), expected(in.size());
      const StridedRun<2> run{4, {1, 2}, {step, 3}};
      for (std::int64_t i = 0; i < 4 * size; ++i) {
        const std::int64_t element = i / size, byte = i % size;
        expected[static_cast<std::size_t>((1 + element * step) * size + byte)] =
            in[static_cast<std::size_t>((2 + element * 3) * size + byte)];
      }
      accrue::copy_run(out.data(), in.data(), run, size);
      CHECK(out == expected);
    }
  }
}
