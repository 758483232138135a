// Dropout layers: modes, printout, and paths as part of a mask's address.
#include "accrue/nn/dropout.h"

#include "accrue/autograd/window.h"
#include "accrue/core/counter_generator.h"
#include "accrue/core/generator.h"
#include "accrue/nn/sequential.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

using namespace accrue;
using accrue::test::There;

namespace {

struct Model : nn::Module {
  nn::Sequential layers;
  nn::Dropout last{0.5};

  Model() {
    layers.add<nn::Dropout>(0.5);
    register_module("layers", layers);
    register_module("last", last);
  }
};

}  // namespace

TEST_CASE("nn.dropout: it drops while training and does nothing in evaluation") {
  manual_seed(0);
  nn::Dropout layer(0.5);
  CHECK(layer.str() == "Dropout(p=0.5, inplace=False)");
  const Variable x(There::ones({10}));
  // torch 1.13.1: bernoulli_(.5) after seed 0
  CHECK(layer(x).value().to_vector<float>() == std::vector<float>{0, 0, 2, 0, 0, 0, 2, 2, 0, 2});
  layer.eval();
  CHECK(layer(x).value().to_vector<float>() == std::vector<float>(10, 1.0f));
  CHECK_THROWS_WITH_AS(nn::Dropout(1.5), "[Dropout] p must lie in [0, 1], got 1.5", ValueError);
}

TEST_CASE("nn.dropout: a module knows its path in the model") {
  Model model;
  CHECK(model.path() == "");
  CHECK(model.layers[0].path() == "layers.0");
  CHECK(model.last.path() == "last");
  struct Outer : nn::Module {
    explicit Outer(Model& inner) { register_module("net", inner); }
  } outer(model);
  CHECK(model.path() == "net");
  CHECK(model.layers[0].path() == "net.layers.0");
}

TEST_CASE("nn.dropout: in a window the mask is addressed by path and use") {
  Model model;
  manual_seed(9);
  Window window;
  window.begin({.lanes = {.nominal_size = 2, .count = 1}, .size = 2}, 5);
  const MicroBatch batch(window, 0, 2);
  const Variable x(There::ones({2, 40}).with_sample_axis({0, 1}));
  model.layers[0].forward(x);
  const Tensor second = model.layers[0].forward(x).value();
  const CounterGenerator numbers = CounterGenerator(9, 5, 1, stream_of("layers.0", 1)).at(0);
  for (std::uint64_t h = 0; h < 40; ++h) {
    const bool keeps = numbers.uniform(h) < 0.5f;
    CHECK((second[1][static_cast<std::int64_t>(h)].item<float>() == 2) == keeps);
  }
}
