// Normalisation layers: torch's names, defaults and numbers.
#include "accrue/nn/norm.h"

#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>

using namespace accrue;
using accrue::test::There;

namespace {

std::vector<std::string> names_of(const nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, value] : module.state_dict()) names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("nn.norm: layers print and name their parameters as torch does") {
  nn::LayerNorm layer(10);
  CHECK(layer.str() == "LayerNorm((10,), eps=1e-05, elementwise_affine=True)");
  CHECK(names_of(layer) == std::vector<std::string>{"weight", "bias"});
  CHECK(layer.num_parameters() == 20);
  nn::LayerNorm plain({2, 3}, 0.5, false);
  CHECK(plain.str() == "LayerNorm((2, 3), eps=0.5, elementwise_affine=False)");
  CHECK(plain.num_parameters() == 0);
  CHECK(names_of(nn::LayerNorm({4}, 1e-5, true, false)) == std::vector<std::string>{"weight"});
  nn::RMSNorm rms(10);
  CHECK(rms.str() == "RMSNorm((10,), eps=None, elementwise_affine=True)");
  CHECK(names_of(rms) == std::vector<std::string>{"weight"});
  CHECK(nn::RMSNorm({4}, 1e-6, false).str() ==
        "RMSNorm((4,), eps=1e-06, elementwise_affine=False)");
}

TEST_CASE("nn.norm: rows come out with mean 0 and variance 1, or mean square 1") {
  const Variable x(There::of<float>({{1, 2, 3, 6}, {-4, 0, 0, 4}}));
  nn::LayerNorm layer(4);
  test::there(layer);
  const std::vector<float> y = layer(x).value().to_vector<float>();
  CHECK(y[0] == doctest::Approx(-1.0690429));  // torch 1.13.1
  CHECK(y[3] == doctest::Approx(1.6035644));
  CHECK(y[4] == doctest::Approx(-1.4142126));
  nn::RMSNorm rms(4);
  test::there(rms);
  const std::vector<float> z = rms(x).value().to_vector<float>();
  CHECK(z[0] == doctest::Approx(1 / std::sqrt(12.5)));
  CHECK(z[7] == doctest::Approx(4 / std::sqrt(8.0)));
}

TEST_CASE("nn.norm: parameters take part, and equal elements normalise to the bias") {
  nn::LayerNorm layer(3);
  test::there(layer);
  layer.weight().mutable_value().fill(2);
  layer.bias().mutable_value().fill(0.5);
  CHECK(layer(Variable(There::full({2, 3}, 7))).value().to_vector<float>() ==
        std::vector<float>(6, 0.5f));
}

TEST_CASE("nn.norm: a shape without dimensions is refused") {
  CHECK_THROWS_WITH_AS(nn::LayerNorm(Shape{}),
                       "[LayerNorm] normalized_shape must have a dimension, got []; pass the size "
                       "of the last one",
                       ValueError);
  CHECK_THROWS_AS(nn::RMSNorm(Shape{}), ValueError);
}
