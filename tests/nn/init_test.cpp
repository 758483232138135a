// Bounds and draws of initial values.
#include "accrue/nn/init.h"

#include "accrue/core/bits.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>
#include <limits>

namespace accrue::nn::init {
namespace {

TEST_CASE("nn.init: the bound of Linear is torch's, in double") {
  const double slope = std::sqrt(5.0);
  CHECK(kaiming_uniform_bound(1, slope) == 0.9999999999999999);
  CHECK(kaiming_uniform_bound(0, slope) == 0);
  // torch 1.13.1: math.sqrt(3.0) * (calculate_gain("leaky_relu", math.sqrt(5)) / math.sqrt(n))
  CHECK(kaiming_uniform_bound(3, slope) == 0.5773502691896257);
  CHECK(kaiming_uniform_bound(784, slope) == 0.03571428571428571);
  CHECK(kaiming_uniform_bound(2, 0) == 1.7320508075688772);
  CHECK_THROWS_WITH_AS(kaiming_uniform_bound(-1, slope),
                       "[kaiming_uniform_bound] fan_in must be >= 0, got -1",
                       ValueError);
}

TEST_CASE("nn.init: uniform draws in row-major order of the tensor, whatever its layout") {
  Generator generator(0), same(0);
  std::vector<float> expected(6);
  same.uniform(std::span<float>(expected), -0.5, 0.5);
  Tensor tensor = Tensor::zeros({3, 2}).transpose(0, 1);
  uniform(tensor, 0.5, generator);
  CHECK(tensor.to_vector<float>() == expected);

  Tensor doubles = Tensor::zeros({2}, DType::float64);
  uniform(doubles, 0, generator);
  CHECK(doubles.to_vector<double>() == std::vector<double>{0, 0});
}

TEST_CASE("nn.init: no elements draw nothing, and wrong arguments change nothing") {
  Generator generator(0);
  Tensor nothing = Tensor::empty({0, 3}), some = Tensor::ones({2}), integers = Tensor::arange(3);
  uniform(nothing, 1, generator);
  CHECK_THROWS_AS(uniform(some, -1, generator), ValueError);
  CHECK_THROWS_AS(uniform(some, std::numeric_limits<double>::quiet_NaN(), generator), ValueError);
  CHECK_THROWS_AS(uniform(integers, 1, generator), DTypeError);
  CHECK(generator.get_state() == Generator(0).get_state());
  CHECK(some.to_vector<float>() == std::vector<float>{1, 1});
}

}  // namespace
}  // namespace accrue::nn::init
