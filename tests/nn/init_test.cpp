// Bounds and draws of initial values.
#include "accrue/nn/init.h"

#include "accrue/core/bits.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>
#include <limits>

namespace accrue::nn::init {
namespace {

using test::There;

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
  Tensor tensor = There::zeros({3, 2}).transpose(0, 1);
  uniform(tensor, 0.5, generator);
  CHECK(tensor.to_vector<float>() == expected);

  Tensor doubles = Tensor::zeros({2}, DType::float64);
  uniform(doubles, 0, generator);
  CHECK(doubles.to_vector<double>() == std::vector<double>{0, 0});
}

TEST_CASE("nn.init: no elements draw nothing, and wrong arguments change nothing") {
  Generator generator(0);
  Tensor nothing = There::empty({0, 3}), some = There::ones({2}), integers = There::arange(3);
  uniform(nothing, 1, generator);
  CHECK_THROWS_AS(uniform(some, -1, generator), ValueError);
  CHECK_THROWS_AS(uniform(some, std::numeric_limits<double>::quiet_NaN(), generator), ValueError);
  CHECK_THROWS_AS(uniform(integers, 1, generator), DTypeError);
  CHECK(generator.get_state() == Generator(0).get_state());
  CHECK(some.to_vector<float>() == std::vector<float>{1, 1});
}

TEST_CASE("nn.init: xavier and kaiming fill a weight with torch's bits") {
  // torch 1.13.1, seed 3, a weight [3, 5, 2]: first, second and last element
  const auto check = [](auto fill, std::uint32_t first, std::uint32_t second, std::uint32_t last) {
    Generator generator(3);
    Tensor weight = There::empty({3, 5, 2});
    fill(weight, generator);
    const std::vector<float> w = weight.to_vector<float>();
    CHECK(bits_of(w[0]) == first);
    CHECK(bits_of(w[1]) == second);
    CHECK(bits_of(w[29]) == last);
  };
  check([](Tensor& w, Generator& g) { xavier_uniform(w, 2, g); },
        0xbf9b6e3bU,
        0xbf7755dcU,
        0xbf718cbdU);
  check([](Tensor& w, Generator& g) { xavier_normal(w, 1, g); },
        0xbcddfc4fU,
        0x3e024a81U,
        0x3cb924d8U);
  check([](Tensor& w, Generator& g) { kaiming_uniform(w, {.slope = 0.5}, g); },
        0xbf2fd981U,
        0xbf0be9fdU,
        0xbf08a424U);
  const KaimingOptions options = {.mode = FanMode::out, .nonlinearity = Nonlinearity::relu};
  check([&](Tensor& w, Generator& g) { kaiming_normal(w, options, g); },
        0xbd35401fU,
        0x3e54c3adU,
        0x3d172b5cU);
}

TEST_CASE("nn.init: fans and gains are torch's, and vectors have no fans") {
  CHECK(fans_of({3, 5, 2, 4}).in == 40);
  CHECK(fans_of({3, 5, 2, 4}).out == 24);
  CHECK(gain_of(Nonlinearity::tanh) == 5.0 / 3);
  CHECK(gain_of(Nonlinearity::relu) == 1.4142135623730951);
  CHECK(gain_of(Nonlinearity::leaky_relu, 0.2) == 1.3867504905630728);
  CHECK(gain_of(Nonlinearity::selu) == 0.75);
  CHECK(gain_of(Nonlinearity::sigmoid) == 1);
  Tensor vector = There::ones({3}), nothing = There::empty({0, 3});
  CHECK_THROWS_WITH_AS(xavier_uniform(vector),
                       "[init] a weight must have two dimensions or more, got [3]",
                       ShapeError);
  Generator generator(0);
  kaiming_normal(nothing, {}, generator);
  kaiming_uniform(nothing, {.mode = FanMode::out}, generator);
  CHECK(generator.get_state() == Generator(0).get_state());
}

TEST_CASE("nn.init: normal draws in row-major order with mean and deviation") {
  Generator generator(0), same(0);
  std::vector<float> expected(6);
  same.normal(std::span<float>(expected), 2, 0.5);
  Tensor tensor = There::zeros({3, 2}).transpose(0, 1);
  normal(tensor, 2, 0.5, generator);
  CHECK(tensor.to_vector<float>() == expected);
  CHECK_THROWS_AS(normal(tensor, 0, -1), ValueError);
}

TEST_CASE("nn.init: orthogonal is within rounding of torch's and orthogonal in double") {
  // torch 1.13.1, seed 0
  const auto check = [](const Shape& shape, double gain, const std::vector<float>& expected) {
    CAPTURE(shape);
    Generator generator(0);
    Tensor weight = There::empty(shape);
    orthogonal(weight, gain, generator);
    const std::vector<float> w = weight.to_vector<float>();
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(std::abs(w[i] - expected[i]) <= 2e-6 * gain);
  };
  check({3, 5}, 1.5, {0.783346117f, -0.149160907f, -1.10756028f, 0.288954914f, -0.551303387f});
  check({5, 3}, 1.5, {1.19253016f, 0.25546509f, -0.417818516f, 0.439891696f, -0.753313601f});
  check({2, 3, 2, 2}, 1, {-0.339166522f, -0.347155988f, -0.0754884258f, -0.130708814f});

  Tensor wide = Tensor::empty({20, 50}, DType::float64);
  Generator generator(1);
  orthogonal(wide, 2, generator);
  const std::vector<double> w = wide.to_vector<double>();
  for (std::size_t i = 0; i < 20; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < 50; ++k) sum += w[i * 50 + k] * w[j * 50 + k];
      CHECK(std::abs(sum - (i == j ? 4.0 : 0.0)) < 1e-14);
    }
  }
  Tensor vector = There::ones({3}), nothing = There::empty({0, 3});
  CHECK_THROWS_AS(orthogonal(vector), ShapeError);
  orthogonal(nothing, 1, generator);
}

}  // namespace
}  // namespace accrue::nn::init
