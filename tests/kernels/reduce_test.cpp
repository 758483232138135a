// Sums over dimensions: exact bits over dimensions, layouts and CPU paths.
#include "accrue/kernels/reduce.h"

#include "accrue/core/bits.h"
#include "accrue/tests/support/cpu_paths.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/layouts.h"
#include "accrue/tests/support/sum_reference.h"

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

const Shape kShapes[] = {{},
                         {0},
                         {1},
                         {33},
                         {2500},
                         {5, 7},
                         {7, 1100},
                         {1100, 7},
                         {40, 1500},
                         {3, 0, 2},
                         {0, 4},
                         {9, 40, 11},
                         {2, 3, 1, 5}};

Shape kept_shape(const Shape& shape, std::uint32_t dims) {
  Shape kept;
  for (int d = 0; d < shape.rank(); ++d) {
    if ((dims >> d & 1) == 0) kept.push_back(shape[d]);
  }
  return kept;
}

// Deals the elements, in row-major order, to the sums they belong to; sums in row-major order.
template <class T>
std::vector<T> reference_sums(const Tensor& x, std::uint32_t dims) {
  const Shape kept = kept_shape(x.shape(), dims);
  std::vector<std::vector<T>> members(static_cast<std::size_t>(product(kept, 0, kept.rank())));
  const std::vector<T> values = x.to_vector<T>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i), sum = 0, step = 1;
    for (int d = x.rank() - 1; d >= 0; --d) {
      if ((dims >> d & 1) == 0) {
        sum += rest % x.shape()[d] * step;
        step *= x.shape()[d];
      }
      rest /= x.shape()[d];
    }
    members[static_cast<std::size_t>(sum)].push_back(values[i]);
  }
  std::vector<T> sums;
  for (const auto& list : members) sums.push_back(sum_by_contract(list));
  return sums;
}

}  // namespace

TEST_CASE_TEMPLATE("kernels.reduce: sums over any dimensions have the order of contract 11",
                   T,
                   float,
                   double) {
  std::mt19937_64 random(1);
  int num_calls = 0;
  for_each_cpu_path([&] {
    for (const Shape& shape : kShapes) {
      for (const Layout layout : kLayouts) {
        const Tensor x = with_layout(random_tensor<T>(shape, random), layout);
        for (std::uint32_t dims = 0; dims < 1U << shape.rank(); ++dims) {
          CAPTURE(shape);
          CAPTURE(dims);
          CAPTURE(static_cast<int>(layout));
          Tensor y = Tensor::empty(kept_shape(shape, dims), dtype_of<T>);
          launch_cpu(SumDims{x, dims, y});
          const std::vector<T> sums = y.to_vector<T>(), expected = reference_sums<T>(x, dims);
          CHECK(hash_bits(std::span(sums)) == hash_bits(std::span(expected)));
          ++num_calls;
        }
      }
    }
  });
  MESSAGE(num_calls << " calls");
}

TEST_CASE("kernels.reduce: a sum of nothing is +0") {
  Tensor y = Tensor::full({4}, 1.0);
  launch_cpu(SumDims{Tensor::zeros({0, 4}), 1, y});
  for (const float sum : y.to_vector<float>()) CHECK(hex8(sum) == "00000000");
}

TEST_CASE("kernels.reduce: 50,000,000 float ones sum to exactly 50,000,000") {
  for_each_cpu_path([] {
    Tensor y = Tensor::empty({});
    launch_cpu(SumDims{Tensor::ones({1}).expand({50000000}), 1, y});
    CHECK(y.item<float>() == 5e7f);
  });
}

TEST_CASE("kernels.reduce: the result may have any layout") {
  std::mt19937_64 random(2);
  const Tensor x = random_tensor<float>({6, 50, 7}, random);
  Tensor dense = Tensor::empty({6, 7});
  launch_cpu(SumDims{x, 2, dense});
  for (const Layout layout : kWritableLayouts) {
    Tensor y = with_layout(Tensor::zeros({6, 7}), layout);
    launch_cpu(SumDims{x, 2, y});
    CHECK(y.to_vector<float>() == dense.to_vector<float>());
  }
}

TEST_CASE("kernels.reduce: results that do not fit are refused") {
  const Tensor x = Tensor::zeros({2, 3});
  Tensor y = Tensor::zeros({2}), d = Tensor::zeros({3}, DType::float64);
  CHECK_THROWS_WITH_AS(launch_cpu(SumDims{x, 1, y}),
                       "[sum] the result must have the shape of the kept dimensions [3], got [2]; "
                       "unsqueeze it afterwards to keep all",
                       ShapeError);
  CHECK_THROWS_WITH_AS(launch_cpu(SumDims{x, 1, d}),
                       "[sum] the result must have the operand's dtype float32, got float64; "
                       "convert with to()",
                       DTypeError);
  Tensor i = Tensor::arange(3);
  CHECK_THROWS_AS(launch_cpu(SumDims{i, 0, i}), DTypeError);
  Tensor repeated = Tensor::zeros({1}).expand({3});
  CHECK_THROWS_AS(launch_cpu(SumDims{x, 1, repeated}), StateError);
}
