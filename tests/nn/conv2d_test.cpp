// Conv2d: torch's initial bits and numbers, names, tying, errors, bits in windows.
#include "accrue/nn/conv2d.h"

#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/reduce.h"
#include "accrue/core/bits.h"
#include "accrue/nn/activation.h"
#include "accrue/nn/flatten.h"
#include "accrue/nn/init.h"
#include "accrue/nn/linear.h"
#include "accrue/nn/pool2d.h"
#include "accrue/nn/sequential.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

namespace accrue::nn {
namespace {

using test::there;
using test::There;

std::string bits(const Module& module) {
  std::string out;
  for (const Variable& parameter : module.parameters()) {
    if (!out.empty()) out += " |";
    for (const float value : parameter.value().to_vector<float>()) out += " " + hex8(value);
  }
  return out;
}

std::string hash(const Module& module) {
  std::uint64_t hash = kHashSeed;
  for (const Variable& parameter : module.parameters()) {
    const std::vector<float> values = parameter.value().to_vector<float>();
    hash = hash_bits(std::span(values), hash);
  }
  return hex16(hash);
}

TEST_CASE("nn.conv2d: initial weights and biases have the bits of torch 1.13.1") {
  manual_seed(0);
  CHECK(bits(Conv2d(1, 1, 2)) == " bb755400 3e89545e bed2b316 bebc6680 | be4532f4");
  manual_seed(0);
  CHECK(bits(Conv2d(2, 4, {1, 2}, {.groups = 2})) ==
        " bbad7922 3ec2369c bf14fcb1 bf05381d be8b70d6 3e422aab bc658a57 3f0f8740 | bd8083de "
        "3e3f9997 be5ad35d be0e541b");
  manual_seed(42);
  CHECK(bits(Conv2d(2, 1, 1, {}, false)) == " 3f0a6571 3f163f5b");
  manual_seed(0);
  CHECK(hash(Conv2d(1, 16, 3)) == "8e89311a75bb2125");
  CHECK(hash(Conv2d(16, 32, 3)) == "b0f573ca9d3e3d84");
  Generator generator(7);
  CHECK(hash(Conv2d(3, 64, 7, {}, false, generator)) == "87a8d4861bd798ca");
}

TEST_CASE("nn.conv2d: layers print and name their parameters as torch does") {
  Conv2d layer(1, 16, 3, {.padding = 1});
  CHECK(layer.str() == "Conv2d(1, 16, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))");
  const Conv2d full(4, 8, {1, 2}, {.stride = 2, .dilation = {2, 1}, .groups = 4}, false);
  CHECK(full.str() ==
        "Conv2d(4, 8, kernel_size=(1, 2), stride=(2, 2), dilation=(2, 1), groups=4, bias=False)");
  std::vector<std::string> names;
  for (const auto& [name, value] : layer.state_dict()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"weight", "bias"});
  CHECK(layer.num_parameters() == 160);
}

TEST_CASE("nn.conv2d: values are those of torch 1.13.1") {
  Tensor image = Tensor::arange(18, DType::float32).view({1, 2, 3, 3});
  Tensor weight = Tensor::arange(8, DType::float32).view({1, 2, 2, 2});
  for (std::int64_t i = 0; i < 18; ++i) {
    image.mutable_data<float>()[i] = static_cast<float>(i) / 8 - 1;
  }
  for (std::int64_t i = 0; i < 8; ++i) {
    weight.mutable_data<float>()[i] = static_cast<float>(i) / 4 - 1;
  }
  Conv2d layer(Variable::leaf(there(weight)),
               Variable::leaf(There::of<float>({0.5f})),
               {.stride = 2, .padding = 1});
  const Variable y = layer(there(image));
  CHECK(y.shape() == Shape{1, 1, 2, 2});
  CHECK(y.value().to_vector<float>() == std::vector<float>{0.84375f, 1.53125f, 1.8125f, 2.875f});
}

/// A net of every layer for images, and the hash of its gradients after one window.
std::string hash_of_window(Tensor images, const std::vector<std::int64_t>& ends) {
  manual_seed(3);
  Sequential net;
  net.add<Conv2d>(1, 4, 3, Conv2dOptions{.padding = 1});
  net.add<ReLU>();
  net.add<MaxPool2d>(2);
  net.add<Conv2d>(4, 6, 3, Conv2dOptions{.groups = 2});
  net.add<AvgPool2d>(2);
  net.add<Flatten>();
  net.add<Linear>(24, 3);
  there(net);
  images = images.to(test::device_under_test());
  Window window;
  const std::int64_t count = images.size(0);
  window.begin({.lanes = {.nominal_size = count, .count = 4}, .size = count, .end_lane = 4});
  std::int64_t begin = 0;
  for (const std::int64_t end : ends) {
    const MicroBatch scope(window, begin, end);
    const Tensor part = images.narrow(0, begin, end - begin).with_sample_axis({0, 1});
    const Variable y = net(part);
    Engine({}).run(y, There::ones(y.shape()));
    begin = end;
  }
  window.finish(static_cast<double>(count));
  std::uint64_t hash = kHashSeed;
  for (const Variable& parameter : net.parameters()) {
    const std::vector<float> values = parameter.grad().to_vector<float>();
    hash = hash_bits(std::span(values), hash);
  }
  return hex16(hash);
}

TEST_CASE("nn.conv2d: a net for images has the same gradients however a window is split") {
  Tensor images = Tensor::empty({9, 1, 12, 12});
  Generator generator(1);
  init::uniform(images, 1, generator);
  const std::string whole = hash_of_window(images, {9});
  CHECK(hash_of_window(images, {1, 2, 3, 4, 5, 6, 7, 8, 9}) == whole);
  CHECK(hash_of_window(images, {4, 9}) == whole);
  CHECK(hash_of_window(images, {2, 7, 9}) == whole);
  images.mutable_data<float>()[700] += 1;
  CHECK(hash_of_window(images, {9}) != whole);
}

TEST_CASE("nn.conv2d: layers over one weight are tied, and sizes of zero work") {
  Conv2d first(1, 1, 1), second(first.weight());
  there(first);
  CHECK_FALSE(second.bias().defined());
  sum(second(first(There::ones({1, 1, 2, 2})))).backward();
  CHECK(first.weight().grad().defined());

  Conv2d layer(2, 3, 2);
  there(layer);
  const Variable y = layer(There::zeros({0, 2, 4, 4}));
  CHECK(y.shape() == Shape{0, 3, 3, 3});
  sum(y).backward();
  CHECK(equal_bits(layer.weight().grad(), There::zeros({3, 2, 2, 2})));
  Conv2d empty(0, 2, 3);
  CHECK(there(empty)(There::zeros({1, 0, 3, 3})).value().to_vector<float>() ==
        std::vector<float>{0, 0});
}

TEST_CASE("nn.conv2d: wrong sizes and parameters are refused") {
  CHECK_THROWS_WITH_AS(
      Conv2d(-1, 2, 3), "[Conv2d] channels must be >= 0, got in -1 and out 2", ValueError);
  CHECK_THROWS_WITH_AS(
      Conv2d(1, 2, {3, 0}), "[Conv2d] kernel_size must be at least 1, got (3, 0)", ValueError);
  CHECK_THROWS_WITH_AS(
      Conv2d(4, 6, 3, {.groups = 4}),
      "[Conv2d] groups must divide both numbers of channels, got groups 4 for in 4 and out 6",
      ValueError);
  CHECK_THROWS_AS(Conv2d(4, 6, 3, {.groups = 0}), ValueError);
  const auto leaf = [](const Shape& shape, DType dtype = DType::float32) {
    return Variable::leaf(There::ones(shape, dtype));
  };
  CHECK_THROWS_WITH_AS(Conv2d(leaf({2, 3})),
                       "[Conv2d] weight must be [out, in / groups, KH, KW] and bias [out], got "
                       "[2, 3] and no bias",
                       ShapeError);
  CHECK_THROWS_AS(Conv2d(leaf({2, 3, 1, 1}), leaf({3})), ShapeError);
  CHECK_THROWS_WITH_AS(Conv2d(leaf({2, 3, 1, 1}), leaf({2}, DType::float64)),
                       "[Conv2d] weight and bias must have one dtype, got float32 and float64",
                       DTypeError);
  CHECK_THROWS_AS(Conv2d(Variable(There::ones({2, 3, 1, 1}))), ValueError);
  Conv2d layer(1, 1, 3), still(1, 1, 3, {.stride = 0});
  CHECK_THROWS_AS(there(layer)(There::ones({1, 2, 3, 3})), ShapeError);
  CHECK_THROWS_AS(there(still)(There::ones({1, 1, 3, 3})), ValueError);
}

}  // namespace
}  // namespace accrue::nn
