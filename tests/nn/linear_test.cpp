// Linear: torch's initial bits, all sizes, tying, errors.
#include "accrue/nn/linear.h"

#include "accrue/autograd/ops/reduce.h"
#include "accrue/core/bits.h"
#include "accrue/nn/activation.h"
#include "accrue/nn/sequential.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/golden.h"

#include <fstream>

namespace accrue::nn {
namespace {

using test::there;
using test::There;

std::string bits(const Tensor& tensor) {
  std::string out;
  for (const float value : tensor.to_vector<float>()) out += (out.empty() ? "" : " ") + hex8(value);
  return out;
}

std::string bits(const Module& module) {
  std::string out;
  for (const Variable& p : module.parameters()) out += (out.empty() ? "" : " | ") + bits(p.value());
  return out;
}

TEST_CASE("nn.linear: initial weights and biases have torch's bits") {
  manual_seed(0);
  CHECK(bits(Linear(1, 2, false)) == "bbf55400 3f09545e");
  manual_seed(0);
  CHECK(bits(Linear(1, 2)) == "bbf55400 3f09545e | bf52b316 bf3c6680");
  manual_seed(0);
  CHECK(bits(Linear(2, 2)) == "bbad7922 3ec2369c bf14fcb1 bf05381d | be8b70d6 3e422aab");
  manual_seed(0);
  CHECK(bits(Linear(3, 2)) ==
        "bb8da3e8 3e9e9313 bef34b7e bed98bc9 be63b4b1 3e1e8953 | bc3b6b40 3eea617a");
  manual_seed(42);
  CHECK(bits(Linear(2, 3)) ==
        "3f0a6571 3f163f5b be29a1a3 3f264952 be1ea5df 3e121cb0 | beb042a6 3ed49e79 3f1f9389");
  manual_seed(42);
  CHECK(bits(Linear(4, 1)) == "3ec3b8cc 3ed47b66 bdefe520 3eeb2a1c | bde05cb0");
  manual_seed(0);
  Sequential net;
  net.add<Linear>(2, 3);
  net.add<ReLU>();
  net.add<Linear>(3, 1);
  CHECK(bits(net) ==
        "bbad7922 3ec2369c bf14fcb1 bf05381d be8b70d6 3e422aab | bc658a57 3f0f8740 bd8083de | "
        "3e1c70d2 be32ab9e bde86bea | bf0d33bd");
}

TEST_CASE("nn.linear: 200 layers of mixed sizes have the bits of torch 1.13.1") {
  std::ifstream file(accrue::tests::golden_path("torch_linear.txt"));
  REQUIRE(file);
  Generator generator;
  std::string seed, expected;
  std::int64_t in = 0, out = 0;
  bool has_bias = false;
  int num_layers = 0;
  for (; file >> seed >> in >> out >> has_bias >> expected; ++num_layers) {
    if (seed != "-") generator.manual_seed(std::stoull(seed));
    const Linear layer(in, out, has_bias, generator);
    std::uint64_t hash = kHashSeed;
    for (const Variable& parameter : layer.parameters()) {
      const std::vector<float> values = parameter.value().to_vector<float>();
      hash = hash_bits(std::span(values), hash);
    }
    CAPTURE(num_layers);
    CHECK(hex16(hash) == expected);
  }
  CHECK(num_layers == 200);
  MESSAGE("initialised ", num_layers, " layers");
}

TEST_CASE("nn.linear: a generator of one's own is used and the default one is not touched") {
  manual_seed(1);
  Generator generator(0);
  CHECK(bits(Linear(1, 2, false, generator)) == "bbf55400 3f09545e");
  CHECK(default_generator().get_state() == Generator(1).get_state());
}

TEST_CASE("nn.linear: sizes of zero work in forward and backward") {
  Linear no_inputs(0, 2);
  there(no_inputs);
  CHECK(no_inputs.weight().shape() == Shape{2, 0});
  CHECK(no_inputs.bias().value().to_vector<float>() == std::vector<float>{0, 0});
  CHECK(no_inputs(There::zeros({3, 0})).value().to_vector<float>() == std::vector<float>(6));

  Linear no_outputs(2, 0);
  there(no_outputs);
  CHECK(no_outputs(There::zeros({3, 2})).shape() == Shape{3, 0});

  Linear layer(2, 3);
  there(layer);
  const Variable y = layer(There::zeros({0, 2}));
  CHECK(y.shape() == Shape{0, 3});
  sum(y).backward();
  CHECK(equal_bits(layer.weight().grad(), There::zeros({3, 2})));
  CHECK(equal_bits(layer.bias().grad(), There::zeros({3})));
}

TEST_CASE("nn.linear: inputs of any rank keep their leading dimensions") {
  const Linear reference(Variable::leaf(There::of<float>({{1, 2}, {3, 4}, {5, 6}})),
                         Variable::leaf(There::of<float>({0, 0, 1})));
  Linear layer(reference.weight(), reference.bias());
  CHECK(layer(There::of<float>({1, 1})).value().to_vector<float>() == std::vector<float>{3, 7, 12});
  CHECK(layer(There::ones({4, 5, 2})).shape() == Shape{4, 5, 3});
}

TEST_CASE("nn.linear: layers over one weight are tied") {
  Linear first(2, 2), second(first.weight());
  there(first);
  CHECK_FALSE(second.bias().defined());
  CHECK(second.in_features() == 2);
  Sequential net;
  net.add<Linear>(first.weight(), first.bias());
  net.add<Linear>(first.weight());
  CHECK(net.num_parameters() == 6);
  sum(second(first(There::ones({1, 2})))).backward();
  CHECK(net.parameters()[0].grad().defined());
}

TEST_CASE("nn.linear: wrong sizes and parameters are refused") {
  CHECK_THROWS_WITH_AS(
      Linear(-1, 2), "[Linear] sizes must be >= 0, got in -1 and out 2", ValueError);
  CHECK_THROWS_AS(Linear(2, -1), ValueError);
  Linear layer(2, 3);
  there(layer);
  CHECK_THROWS_AS(layer(There::ones({4, 3})), ShapeError);
  CHECK_THROWS_AS(layer(There::ones({})), ShapeError);
  CHECK_THROWS_AS(layer(Tensor::ones({4, 2}, DType::float64)), DTypeError);

  const auto leaf = [](const Shape& shape, DType dtype = DType::float32) {
    return Variable::leaf(There::ones(shape, dtype));
  };
  CHECK_THROWS_WITH_AS(Linear(leaf({3})),
                       "[Linear] weight must be [out, in] and bias [out], got [3] and no bias",
                       ShapeError);
  CHECK_THROWS_WITH_AS(Linear(leaf({3, 2}), leaf({2})),
                       "[Linear] weight must be [out, in] and bias [out], got [3, 2] and [2]",
                       ShapeError);
  CHECK_THROWS_WITH_AS(Linear(leaf({3, 2}), leaf({3}, DType::float64)),
                       "[Linear] weight and bias must have one dtype, got float32 and float64",
                       DTypeError);
  CHECK_THROWS_AS(Linear(Variable(There::ones({3, 2}))), ValueError);
}

}  // namespace
}  // namespace accrue::nn
