// MultiheadAttention against torch 1.13.1: initial bits, names, numbers.
#include "accrue/nn/attention.h"

#include "accrue/core/bits.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>

using namespace accrue;
using accrue::test::there;
using accrue::test::There;

namespace {

const Tensor& tokens() {
  static const Tensor x =
      There::of<float>({{1, 2, 3, 4}, {0, -1, 1, 0.5f}, {2, 0, 0, -2}}).unsqueeze(0);
  return x;
}

void check_close(const Tensor& got, const std::vector<double>& wanted) {
  const std::vector<float> values = got.to_vector<float>();
  REQUIRE(values.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CHECK(values[i] == doctest::Approx(wanted[i]).epsilon(1e-3));
  }
}

}  // namespace

TEST_CASE("nn.attention: parameters have torch's bits, names and order") {
  Generator generator(0);
  nn::MultiheadAttention layer(4, 2, true, false, generator);
  std::vector<std::string> names;
  for (const auto& [name, value] : layer.state_dict()) names.push_back(name);
  CHECK(names == std::vector<std::string>{
                     "in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"});
  const std::vector<float> w = layer.in_proj_weight().value().to_vector<float>();
  CHECK(bits_of(w[0]) == 0x3e63c329U);
  CHECK(bits_of(w[1]) == 0x3f022d7fU);
  CHECK(bits_of(w[47]) == 0x3e114b81U);
  CHECK(bits_of(layer.out_proj().weight().value().to_vector<float>()[0]) == 0xbb755400U);
  CHECK(layer.out_proj().bias().value().to_vector<float>() == std::vector<float>(4));
  CHECK(layer.str() ==
        "MultiheadAttention(\n  (out_proj): Linear(in_features=4, out_features=4, bias=True)\n)");
  CHECK(nn::MultiheadAttention(4, 2, false).num_parameters() == 64);
}

TEST_CASE("nn.attention: results are torch's, with and without a causal mask") {
  Generator generator(0);
  nn::MultiheadAttention layer(4, 2, true, false, generator);
  there(layer);
  check_close(layer(Variable(tokens())).value(),
              {-1.1226,
               -0.3377,
               -0.5203,
               0.9903,
               -0.1154,
               0.0234,
               -0.0568,
               -0.3804,
               -0.0622,
               0.0513,
               -0.0295,
               -0.6548});
  generator.manual_seed(0);
  nn::MultiheadAttention causal(4, 2, true, true, generator);
  there(causal);
  check_close(causal(Variable(tokens())).value(),
              {-1.3806,
               -0.1699,
               -0.5994,
               0.9510,
               -0.2895,
               0.0083,
               -0.1282,
               0.2601,
               -0.0622,
               0.0513,
               -0.0295,
               -0.6548});
}

TEST_CASE("nn.attention: padding behind a causal sequence changes no bit of it") {
  nn::MultiheadAttention layer(4, 2, true, true);
  there(layer);
  const Tensor y = layer(Variable(tokens())).value();
  Tensor padded = There::full({1, 50, 4}, HUGE_VAL);
  padded.narrow(1, 0, 3).copy_from(tokens());
  CHECK(equal_bits(layer(Variable(padded)).value().narrow(1, 0, 3), y));
}

TEST_CASE("nn.attention: wrong sizes are refused") {
  CHECK_THROWS_WITH_AS(nn::MultiheadAttention(6, 4),
                       "[MultiheadAttention] embed_dim must be a positive multiple of num_heads, "
                       "got 6 and 4",
                       ValueError);
  CHECK_THROWS_AS(nn::MultiheadAttention(0, 1), ValueError);
  nn::MultiheadAttention layer(4, 2);
  CHECK_THROWS_WITH_AS(layer(Variable(There::ones({3, 4}))),
                       "[MultiheadAttention] the input must be [B, T, 4], got [3, 4]",
                       ShapeError);
  CHECK_THROWS_AS(layer(Variable(There::ones({1, 3, 5}))), ShapeError);
}
