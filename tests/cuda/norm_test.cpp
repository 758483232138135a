// Largest magnitudes and elements that are not finite on CUDA, under every schedule.
#include "accrue/core/config.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/support/device_tensor.h"
#include "accrue/tests/support/doctest.h"

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

constexpr bool kIsSlow = kAddressSanitizer || kThreadSanitizer;

/// Compares both results with the CPU's under every schedule.
void check(const Tensor& values, Layout layout) {
  DeviceTensor x(values, layout);
  const double largest = launch_cpu(MaxAbs{{&x.twin, 1}});
  const Nonfinite expected = launch_cpu(FindNonfinite{{&x.twin, 1}});
  CAPTURE(values.shape().str());
  CHECK(examine({}, [&] {
          CHECK(canonical_bits(launch_cuda(MaxAbs{{&x.tensor, 1}}, {})) == canonical_bits(largest));
          const Nonfinite found = launch_cuda(FindNonfinite{{&x.tensor, 1}}, {});
          CHECK(found.count == expected.count);
          CHECK(found.first == expected.first);
        }) == "");
}

std::vector<Shape> shapes() {
  std::vector<Shape> out = {{}, {0}, {33, 5}};
  if (!kIsSlow) {
    for (const Shape& more : {Shape{1},
                              Shape{31},
                              Shape{2, 3, 4},
                              Shape{2, 3, 2, 2, 2, 2},
                              Shape{8192},
                              Shape{8193},
                              Shape{3, 10000}})
      out.push_back(more);
  }
  return out;
}

}  // namespace

TEST_CASE("cuda.norm: magnitudes and elements that are not finite are the CPU's") {
  for (const Shape& shape : shapes()) {
    for (const Layout layout : kLayouts) {
      std::mt19937_64 random(3);
      if (kIsSlow && layout == Layout::interleaved) continue;
      check(random_tensor<float>(shape, random), layout);
      check(random_tensor<float>(shape, random, true), layout);
      check(random_tensor<double>(shape, random, true), layout);
    }
  }
}

TEST_CASE("cuda.norm: one element that is not finite is found wherever it lies") {
  for (const std::int64_t place : {0, 31, 32, 255, 256, 299}) {
    for (const float value : {HUGE_VALF, -HUGE_VALF, NAN}) {
      if (kIsSlow && value < 0) continue;
      Tensor x = Tensor::zeros({300});
      x.mutable_data<float>()[place] = value;
      check(x, Layout::contiguous);
    }
  }
}

TEST_CASE("cuda.norm: the first of several tensors with such elements is the CPU's") {
  DeviceTensor a(Tensor::zeros({9000})), b(Tensor::zeros({0})), c(Tensor::full({3}, NAN));
  const Tensor tensors[] = {a.tensor, b.tensor, a.tensor, c.tensor, c.tensor};
  CHECK(launch_cuda(FindNonfinite{{}}, {}).tensor == -1);
  CHECK(launch_cuda(FindNonfinite{std::span(tensors).first(3)}, {}).tensor == -1);
  const auto [tensor, count, first] = launch_cuda(FindNonfinite{tensors}, {});
  CHECK(tensor == 3);
  CHECK(count == 3);
  CHECK(first == 0);
}

TEST_CASE("cuda.norm: several tensors have the CPU's sum of squares and largest magnitude") {
  std::mt19937_64 random(7);
  DeviceTensor a(random_tensor<float>({3, 1100}, random)), b(Tensor::zeros({0})),
      c(random_tensor<double>({5}, random)), d(Tensor::full({2}, NAN));
  const std::vector<Tensor> twins = {a.twin, b.twin, c.twin, a.twin};
  const std::vector<Tensor> tensors = {a.tensor, b.tensor, c.tensor, a.tensor};
  CHECK(launch_cuda(SquareSum{tensors, 0.1}, {}) == launch_cpu(SquareSum{twins, 0.1}));
  CHECK(launch_cuda(SquareSum{{}, 3}, {}) == 3);
  CHECK(launch_cuda(MaxAbs{tensors}, {}) == launch_cpu(MaxAbs{twins}));
  const Tensor last[] = {d.tensor, a.tensor};
  CHECK(std::isnan(launch_cuda(MaxAbs{last}, {})));
  CHECK(launch_cuda(MaxAbs{{}}, {}) == 0);
}

TEST_CASE("cuda.norm: integers are refused as on the CPU") {
  DeviceTensor x(Tensor::arange(3));
  CHECK_THROWS_AS(launch_cuda(MaxAbs{{&x.tensor, 1}}, {}), DTypeError);
  CHECK_THROWS_AS(launch_cuda(FindNonfinite{{&x.tensor, 1}}, {}), DTypeError);
}
