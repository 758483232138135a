// Pooling layers: torch's printout, values and choice among equals.
#include "accrue/nn/pool2d.h"

#include "accrue/autograd/ops/reduce.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>

using namespace accrue;
using accrue::test::There;

TEST_CASE("nn.pool2d: layers print as torch does") {
  CHECK(nn::MaxPool2d(2).str() ==
        "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)");
  CHECK(nn::MaxPool2d({3, 2}, {.stride = 2, .padding = {1, 0}, .dilation = 2, .ceil_mode = true})
            .str() ==
        "MaxPool2d(kernel_size=(3, 2), stride=2, padding=(1, 0), dilation=2, ceil_mode=True)");
  CHECK(nn::AvgPool2d({2, 1}).str() == "AvgPool2d(kernel_size=(2, 1), stride=(2, 1), padding=0)");
  CHECK(nn::AvgPool2d(3, {.stride = 1, .padding = 1}).str() ==
        "AvgPool2d(kernel_size=3, stride=1, padding=1)");
}

TEST_CASE("nn.pool2d: the first of equal elements and the last NaN get the gradient") {
  const Variable x = Variable::leaf(
      There::of<float>({{1, 3, NAN, 2}, {3, 3, 5, NAN}, {-HUGE_VALF, -HUGE_VALF, 0, -0.0f}}));
  nn::MaxPool2d layer(2, {.ceil_mode = true});
  const Variable y = layer(x);
  CHECK(y.shape() == Shape{2, 2});
  const std::vector<float> values = y.value().to_vector<float>();
  CHECK(values[0] == 3);
  CHECK(std::isnan(values[1]));
  CHECK(values[2] == -HUGE_VALF);
  CHECK_FALSE(std::signbit(values[3]));
  y.backward(There::of<float>({{1, 2}, {3, 4}}));
  CHECK(x.grad().to_vector<float>() == std::vector<float>{0, 1, 0, 0, 0, 0, 0, 2, 3, 0, 4, 0});
}

TEST_CASE("nn.pool2d: a window that sees only padding gives -inf and takes no gradient") {
  const Variable x = Variable::leaf(There::ones({3, 3}));
  const Variable y = max_pool2d(x, 2, {.stride = 1, .padding = 1, .dilation = 4});
  CHECK(y.value().to_vector<float>() == std::vector<float>{-HUGE_VALF});
  sum(y).backward();
  CHECK(equal_bits(x.grad(), There::zeros({3, 3})));
}

TEST_CASE("nn.pool2d: means divide by what the options say") {
  const Variable x(There::of<float>({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}));
  const auto values = [&](const AvgPool2dOptions& options) {
    return nn::AvgPool2d(2, options)(x).value().to_vector<float>();
  };
  using Values = std::vector<float>;
  CHECK(values({}) == Values{3});
  CHECK(values({.padding = 1}) == Values{0.25f, 1.25f, 2.75f, 7});
  CHECK(values({.padding = 1, .count_include_pad = false}) == Values{1, 2.5f, 5.5f, 7});
  CHECK(values({.ceil_mode = true}) == Values{3, 4.5f, 7.5f, 9});
  CHECK(values({.divisor_override = 2}) == Values{6});
}
