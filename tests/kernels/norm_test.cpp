// Norms: exact bits over layouts, sizes and CPU paths, special values.
#include "accrue/kernels/norm.h"

#include "accrue/core/bits.h"
#include "accrue/tests/support/cpu_paths.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/layouts.h"
#include "accrue/tests/support/sum_reference.h"

#include <cmath>

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

const Shape kShapes[] = {{}, {0}, {1}, {31}, {33}, {1024}, {1025}, {3, 0}, {20, 100}, {100, 1501}};

template <class T>
double square_sum(const std::vector<T>& x) {
  std::vector<double> squares;
  for (const T value : x) squares.push_back(static_cast<double>(value) * value);
  return sum_by_contract(squares);
}

double square_sum_of(const Tensor& x) { return launch_cpu(SquareSum{{&x, 1}}); }
double max_abs_of(const Tensor& x) { return launch_cpu(MaxAbs{{&x, 1}}); }

}  // namespace

TEST_CASE_TEMPLATE("kernels.norm: the sum of squares has the shape of contract 11 in every layout",
                   T,
                   float,
                   double) {
  std::mt19937_64 random(1);
  int num_sums = 0;
  for_each_cpu_path([&] {
    for (const Shape& shape : kShapes) {
      for (const Layout layout : kLayouts) {
        CAPTURE(shape);
        const Tensor x = with_layout(random_tensor<T>(shape, random), layout);
        const double expected = square_sum(x.to_vector<T>());
        CHECK(hex16(square_sum_of(x)) == hex16(expected));
        ++num_sums;
      }
    }
  });
  MESSAGE(num_sums << " sums");
}

TEST_CASE("kernels.norm: squares of large floats do not overflow, those of tiny ones stay") {
  for_each_cpu_path([] {
    CHECK(std::sqrt(square_sum_of(Tensor::of<float>({3e30f, 4e30f}))) == doctest::Approx(5e30));
    CHECK(square_sum_of(Tensor::of<float>({0x1p-149f})) == 0x1p-298);
    CHECK(std::isnan(square_sum_of(Tensor::of<float>({1.0f, NAN}))));
  });
}

TEST_CASE_TEMPLATE("kernels.norm: the largest magnitude is exact in every layout",
                   T,
                   float,
                   double) {
  std::mt19937_64 random(2);
  for_each_cpu_path([&] {
    for (const Shape& shape : kShapes) {
      for (const Layout layout : kLayouts) {
        const Tensor x = with_layout(random_tensor<T>(shape, random), layout);
        T expected = 0;
        for (const T value : x.to_vector<T>()) expected = std::max(expected, std::abs(value));
        CHECK(max_abs_of(x) == static_cast<double>(expected));
      }
    }
    CHECK(max_abs_of(Tensor::of<T>({T(1), T(-HUGE_VAL)})) == HUGE_VAL);
    CHECK(std::isnan(max_abs_of(Tensor::of<T>({T(NAN), T(1)}))));
    CHECK(hex16(max_abs_of(Tensor::of<T>({T(-0.0)}))) == hex16(0.0));
  });
}

TEST_CASE_TEMPLATE("kernels.norm: elements that are not finite are counted and located",
                   T,
                   float,
                   double) {
  std::mt19937_64 random(3);
  int num_found = 0;
  for_each_cpu_path([&] {
    for (const Shape& shape : kShapes) {
      for (const bool special : {false, true}) {
        for (const Layout layout : kLayouts) {
          const Tensor x = with_layout(random_tensor<T>(shape, random, special), layout);
          const std::vector<T> values = x.to_vector<T>();
          const auto bad = [](T v) { return !std::isfinite(v); };
          const auto first = std::find_if(values.begin(), values.end(), bad) - values.begin();
          const Nonfinite found = launch_cpu(FindNonfinite{{&x, 1}});
          CHECK(found.count == std::count_if(values.begin(), values.end(), bad));
          CHECK(found.first == (found.count == 0 ? -1 : first));
          CHECK(found.tensor == (found.count == 0 ? -1 : 0));
          num_found += found.count > 0;
        }
      }
    }
  });
  CHECK(num_found > 0);
  MESSAGE(num_found << " tensors with such elements");
}

TEST_CASE("kernels.norm: the first of several tensors with such elements is named") {
  Tensor tensors[] = {Tensor::zeros({2}),
                      Tensor::zeros({0}),
                      Tensor::zeros({3}, DType::float64),
                      Tensor::full({2}, NAN)};
  CHECK(launch_cpu(FindNonfinite{{}}).tensor == -1);
  CHECK(launch_cpu(FindNonfinite{tensors}).tensor == 3);
  tensors[2][1].fill(HUGE_VAL);
  const auto [tensor, count, first] = launch_cpu(FindNonfinite{tensors});
  CHECK(tensor == 2);
  CHECK(count == 1);
  CHECK(first == 1);
}

TEST_CASE("kernels.norm: several tensors are added left to right, and have one largest magnitude") {
  Tensor tensors[] = {Tensor::of<float>({0x1p-30f}), Tensor::zeros({0}), Tensor::of<double>({-1})};
  CHECK(launch_cpu(SquareSum{tensors}) == 1);  // 2^-60 is lost in 1
  CHECK(launch_cpu(SquareSum{tensors, -1}) == 0);
  CHECK(launch_cpu(SquareSum{std::span(tensors).first(1), 1}) == 1);
  CHECK(launch_cpu(SquareSum{{}, 3}) == 3);
  CHECK(launch_cpu(MaxAbs{tensors}) == 1);
  CHECK(launch_cpu(MaxAbs{{}}) == 0);
  tensors[0].fill(NAN);
  CHECK(std::isnan(launch_cpu(MaxAbs{tensors})));
}

TEST_CASE("kernels.norm: integers are refused") {
  CHECK_THROWS_WITH_AS(square_sum_of(Tensor::arange(3)),
                       "[square_sum] needs float32 or float64, got int64; convert with to()",
                       DTypeError);
  CHECK_THROWS_AS(max_abs_of(Tensor::arange(3)), DTypeError);
  const Tensor integers[] = {Tensor::zeros({1}), Tensor::arange(3)};
  CHECK_THROWS_AS(launch_cpu(FindNonfinite{integers}), DTypeError);
}
