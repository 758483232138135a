// Sequential and the layers without parameters.
#include "accrue/nn/sequential.h"

#include "accrue/nn/activation.h"
#include "accrue/nn/flatten.h"
#include "accrue/nn/linear.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

namespace accrue::nn {
namespace {

using test::There;

TEST_CASE("nn.sequential: layers apply in order and their names are their positions") {
  Sequential net;
  Linear& first = net.add<Linear>(Variable::leaf(There::of<float>({{1}, {-1}})));
  net.add<ReLU>();
  net.add<Linear>(Variable::leaf(There::of<float>({{10, 1}})),
                  Variable::leaf(There::of<float>({0.5f})));
  CHECK(net(There::of<float>({{2}, {-3}})).value().to_vector<float>() ==
        std::vector<float>{20.5f, 3.5f});
  CHECK(net.size() == 3);
  CHECK(&net[0] == &first);
  std::string names;
  for (const auto& [name, parameter] : net.named_parameters()) names += name + " ";
  CHECK(names == "0.weight 2.weight 2.bias ");
}

TEST_CASE("nn.sequential: pointers can be given at once, and the tree prints as torch prints it") {
  Sequential net(std::make_unique<Flatten>(), std::make_unique<Linear>(784, 256));
  net.add<ReLU>();
  net.add<Sequential>().add<Linear>(2, 3, false);
  net.add<Sequential>();
  CHECK(net.str() ==
        "Sequential(\n"
        "  (0): Flatten(start_dim=1, end_dim=-1)\n"
        "  (1): Linear(in_features=784, out_features=256, bias=True)\n"
        "  (2): ReLU()\n"
        "  (3): Sequential(\n"
        "    (0): Linear(in_features=2, out_features=3, bias=False)\n"
        "  )\n"
        "  (4): Sequential()\n"
        ")");
}

TEST_CASE("nn.sequential: an empty one returns its input") {
  Sequential net;
  const Variable x = There::ones({2});
  CHECK(net(x).value().shares_storage(x.value()));
}

TEST_CASE("nn.sequential: null layers and positions outside are refused") {
  Sequential net;
  CHECK_THROWS_WITH_AS(net.append(nullptr), "[sequential] a layer is needed, got null", ValueError);
  CHECK(net.size() == 0);
  net.add<ReLU>();
  CHECK_THROWS_WITH_AS(net[1], "[sequential] position must lie in [0, 1), got 1", IndexError);
  CHECK_THROWS_AS(net[-1], IndexError);
}

TEST_CASE("nn.sequential: Flatten merges all dimensions but the samples, or those given") {
  const Variable x = There::zeros({2, 3, 4, 5});
  CHECK(Flatten()(x).shape() == Shape{2, 60});
  CHECK(Flatten(0, 1)(x).shape() == Shape{6, 4, 5});
  CHECK(Flatten()(There::zeros({0, 3, 4})).shape() == Shape{0, 12});
  CHECK_THROWS_AS(Flatten(1, 7)(x), IndexError);
}

}  // namespace
}  // namespace accrue::nn
