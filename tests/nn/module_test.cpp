// The module tree: names, order, tying, freezing, state, text.
#include "accrue/nn/module.h"

#include "accrue/autograd/ops/binary.h"
#include "accrue/nn/linear.h"
#include "accrue/nn/sequential.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

namespace accrue::nn {
namespace {

using test::There;

/// Opens the registration functions to tests.
struct Open : Module {
  using Module::register_buffer;
  using Module::register_module;
  using Module::register_parameter;
};

/// A tree whose definition order differs from the alphabet and in which `head.weight` is tied.
struct Net : Module {
  Open body;
  Open inner;
  Variable table, scale, shift;

  Net() {
    register_module("body", body);
    scale = register_parameter("scale", There::ones({}));
    body.register_module("inner", inner);
    table = body.register_parameter("table", There::arange(6, DType::float32).view({2, 3}));
    shift = inner.register_parameter("shift", There::zeros({3}));
    inner.register_parameter("weight", table);
  }
};

std::vector<std::string> names_of(const NamedParameters& parameters) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : parameters) names.push_back(name);
  return names;
}

std::vector<std::string> names_of(const StateDict& state) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state) names.push_back(name);
  return names;
}

TEST_CASE("nn.module: parameters come in definition order, depth first, tied ones once") {
  Net net;
  CHECK(names_of(net.named_parameters()) ==
        std::vector<std::string>{"scale", "body.table", "body.inner.shift"});
  const std::vector<Variable> parameters = net.parameters();
  REQUIRE(parameters.size() == 3);
  CHECK(parameters[0].node() == net.scale.node());
  CHECK(parameters[1].node() == net.table.node());
  CHECK(parameters[2].node() == net.shift.node());
  CHECK(net.num_parameters() == 10);
}

TEST_CASE("nn.module: a module added twice counts once") {
  Open parent, child;
  child.register_parameter("w", There::ones({2}));
  parent.register_module("a", child);
  parent.register_module("b", child);
  CHECK(names_of(parent.named_parameters()) == std::vector<std::string>{"a.w"});
  CHECK(names_of(parent.state_dict()) == std::vector<std::string>{"a.w", "b.w"});
}

TEST_CASE("nn.module: a parameter is a leaf that requires grad, and shares the value given") {
  Open module;
  Tensor value = There::ones({2});
  const Variable w = module.register_parameter("w", value);
  CHECK(w.requires_grad());
  CHECK(w.is_leaf());
  value.fill(3);
  CHECK(module.parameters()[0].value().to_vector<float>() == std::vector<float>{3, 3});
}

TEST_CASE("nn.module: buffers are state between parameters and modules, and are not trained") {
  Open parent, child;
  parent.register_module("child", child);
  child.register_buffer("mean", There::zeros({2}));
  const Tensor count = parent.register_buffer("count", There::zeros({}, DType::int64));
  parent.register_parameter("w", There::ones({1}));
  parent.register_module("again", child);
  CHECK(names_of(parent.named_buffers()) == std::vector<std::string>{"count", "child.mean"});
  CHECK(names_of(parent.named_parameters()) == std::vector<std::string>{"w"});
  CHECK(names_of(parent.state_dict()) ==
        std::vector<std::string>{"w", "count", "child.mean", "again.mean"});
  StateDict state;
  for (const auto& [name, tensor] : parent.state_dict()) state.emplace_back(name, tensor.clone());
  state[1].second.fill(7);
  state[2].second.fill(3);
  CHECK_THROWS_WITH_AS(parent.load_state_dict(state),
                       "[load_state_dict] the state must fit the module, got tied but unequal: "
                       "again.mean; nothing was loaded",
                       ValueError);
  state[3].second.fill(3);
  parent.load_state_dict(state);
  CHECK(count.item<std::int64_t>() == 7);
  CHECK(child.named_buffers()[0].second.to_vector<float>() == std::vector<float>{3, 3});
  CHECK_THROWS_AS(parent.register_buffer("w", count), ValueError);
  CHECK_THROWS_AS(parent.register_parameter("count", There::ones({1})), ValueError);
  CHECK_THROWS_WITH_AS(parent.register_buffer("none", Tensor()),
                       "[register_buffer] \"none\" must be a tensor, got an undefined one",
                       ValueError);
}

TEST_CASE("nn.module: names that are empty, dotted or taken are refused") {
  Open module, child;
  module.register_parameter("w", There::ones({1}));
  module.register_module("m", child);
  const auto add = [&](const char* name) { module.register_parameter(name, There::ones({1})); };
  CHECK_THROWS_WITH_AS(
      add(""), "[register_parameter] names must have a character and no dot, got \"\"", ValueError);
  CHECK_THROWS_WITH_AS(add("a.b"),
                       "[register_parameter] names must have a character and no dot, got \"a.b\"",
                       ValueError);
  CHECK_THROWS_WITH_AS(
      add("w"), "[register_parameter] names must differ, got \"w\" a second time", ValueError);
  CHECK_THROWS_AS(add("m"), ValueError);
  CHECK_THROWS_WITH_AS(module.register_module("w", child),
                       "[register_module] names must differ, got \"w\" a second time",
                       ValueError);
  CHECK_THROWS_AS(module.register_module("m", child), ValueError);
  CHECK(module.parameters().size() == 1);
}

TEST_CASE("nn.module: what is no floating leaf cannot be a parameter, and modules form a tree") {
  Open module, child;
  CHECK_THROWS_AS(module.register_parameter("n", There::arange(3)), DTypeError);
  const Variable w = Variable::leaf(There::ones({1}));
  CHECK_THROWS_WITH_AS(module.register_parameter("sum", w + w),
                       "[register_parameter] \"sum\" must be a leaf, got the result of add; use "
                       "Variable::leaf(value)",
                       ValueError);
  CHECK_THROWS_WITH_AS(
      module.register_parameter("plain", Variable(There::ones({1}))),
      "[register_parameter] \"plain\" must be a leaf, got a variable without a gradient; use "
      "Variable::leaf(value)",
      ValueError);
  module.register_module("child", child);
  CHECK_THROWS_WITH_AS(
      child.register_module("parent", module),
      "[register_module] modules must form a tree, got \"parent\", which holds the module it is "
      "added to",
      ValueError);
  CHECK_THROWS_AS(module.register_module("self", module), ValueError);
  CHECK(module.parameters().empty());
}

TEST_CASE("nn.module: training mode, freezing and zero_grad reach the whole tree") {
  Net net;
  CHECK(net.inner.is_training());
  net.eval();
  CHECK_FALSE(net.is_training());
  CHECK_FALSE(net.inner.is_training());
  net.train();
  CHECK(net.inner.is_training());

  net.set_requires_grad(false);
  CHECK_FALSE(net.shift.requires_grad());
  CHECK_FALSE(net.table.requires_grad());
  net.set_requires_grad(true);
  CHECK(net.shift.requires_grad());

  net.shift.set_grad(There::ones({3}));
  net.zero_grad();
  CHECK_FALSE(net.shift.grad().defined());
}

TEST_CASE("nn.module: a state holds the values under all names, and loading copies them") {
  Net net, other;
  const StateDict state = net.state_dict();
  CHECK(names_of(state) ==
        std::vector<std::string>{"scale", "body.table", "body.inner.shift", "body.inner.weight"});
  CHECK(state[1].second.shares_storage(net.table.value()));

  net.table.mutable_value().fill(7);
  other.shift.set_grad(There::ones({3}));
  other.load_state_dict(state);
  CHECK(equal_bits(other.table.value(), There::full({2, 3}, 7)));
  CHECK_FALSE(other.table.value().shares_storage(net.table.value()));
  CHECK(other.shift.grad().defined());
}

TEST_CASE("nn.module: a tied parameter loads from any of its names") {
  Net net;
  const Tensor nines = There::full({2, 3}, 9);
  const Tensor scale = There::ones({}), shift = There::zeros({3});
  net.load_state_dict(
      {{"body.inner.weight", nines}, {"scale", scale}, {"body.inner.shift", shift}});
  CHECK(equal_bits(net.table.value(), nines));
  CHECK_THROWS_WITH_AS(net.load_state_dict({{"body.inner.weight", nines},
                                            {"body.table", There::zeros({2, 3})},
                                            {"scale", scale},
                                            {"body.inner.shift", shift}}),
                       "[load_state_dict] the state must fit the module, got tied but unequal: "
                       "body.inner.weight; nothing was loaded",
                       ValueError);
}

TEST_CASE("nn.module: a state that does not fit is refused whole, with every fault") {
  Net net;
  const StateDict before = {{"table", net.table.value().clone()},
                            {"scale", net.scale.value().clone()}};
  CHECK_THROWS_WITH_AS(
      net.load_state_dict({{"scale", There::zeros({})},
                           {"body.table", There::zeros({3, 2})},
                           {"body.inner.weight", Tensor::zeros({2, 3}, DType::float64)},
                           {"bias", There::zeros({1})},
                           {"scale", There::zeros({})},
                           {"body.gain", Tensor()}}),
      "[load_state_dict] the state must fit the module, got missing: body.inner.shift; not in the "
      "module: bias, body.gain; given twice: scale; of another shape or dtype: body.table [3, 2] "
      "float32 for [2, 3] float32, body.inner.weight [2, 3] float64 for [2, 3] float32; nothing "
      "was loaded",
      ValueError);
  CHECK_THROWS_WITH_AS(net.load_state_dict({}),
                       "[load_state_dict] the state must fit the module, got missing: scale, "
                       "body.table, body.inner.shift; nothing was loaded",
                       ValueError);
  CHECK_THROWS_AS(net.load_state_dict({{"scale", Tensor()}}), ValueError);
  CHECK(equal_bits(net.table.value(), before[0].second));
  CHECK(equal_bits(net.scale.value(), before[1].second));
}

struct Classifier : Module {
  Linear fc1{784, 256};
  Sequential rest;

  Classifier() {
    rest.add<Linear>(256, 10, false);
    register_module("fc1", fc1);
    register_module("rest", rest);
  }
};

TEST_CASE("nn.module: a tree prints as torch prints it, a user's class under its name") {
  CHECK(Classifier().str() ==
        "Classifier(\n"
        "  (fc1): Linear(in_features=784, out_features=256, bias=True)\n"
        "  (rest): Sequential(\n"
        "    (0): Linear(in_features=256, out_features=10, bias=False)\n"
        "  )\n"
        ")");
  CHECK(Open().str() == "Open()");
  struct Local : Module {};
  CHECK(Local().str() == "Local()");
}

}  // namespace
}  // namespace accrue::nn
