// Activation layers: each is its function and prints as in torch.
#include "accrue/nn/activation.h"

#include "accrue/nn/sequential.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

namespace accrue::nn {
namespace {

using test::There;

TEST_CASE("nn.activation: each layer is its function") {
  const Variable x = There::of<float>({{-1.5f, 0, 2}, {0.25f, -3, 1}});
  const auto check = [&](Layer&& layer, const Variable& expected) {
    CAPTURE(layer.str());
    CHECK(layer(x).value().to_vector<float>() == expected.value().to_vector<float>());
  };
  check(ReLU(), relu(x));
  check(LeakyReLU(0.2), leaky_relu(x, 0.2));
  check(GELU(), gelu(x));
  check(GELU(GeluForm::tanh), gelu_tanh(x));
  check(Tanh(), tanh(x));
  check(Sigmoid(), sigmoid(x));
  check(SiLU(), silu(x));
  check(Softmax(0), softmax(x, 0));
  check(LogSoftmax(), log_softmax(x, -1));
}

TEST_CASE("nn.activation: they print as in torch") {
  Sequential net;
  net.add<ReLU>();
  net.add<LeakyReLU>(0.2);
  net.add<GELU>();
  net.add<GELU>(GeluForm::tanh);
  net.add<Tanh>();
  net.add<Sigmoid>();
  net.add<SiLU>();
  net.add<Softmax>(1);
  net.add<LogSoftmax>();
  CHECK(net.str() ==
        "Sequential(\n"
        "  (0): ReLU()\n"
        "  (1): LeakyReLU(negative_slope=0.2)\n"
        "  (2): GELU(approximate='none')\n"
        "  (3): GELU(approximate='tanh')\n"
        "  (4): Tanh()\n"
        "  (5): Sigmoid()\n"
        "  (6): SiLU()\n"
        "  (7): Softmax(dim=1)\n"
        "  (8): LogSoftmax(dim=-1)\n"
        ")");
}

}  // namespace
}  // namespace accrue::nn
