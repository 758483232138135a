// Adam and AdamW: torch's bits, groups, saved state, refused options.
#include "accrue/optim/adam.h"

#include "accrue/optim/adamw.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/optimizer_golden.h"

#include <cmath>

namespace accrue::optim {
namespace {

using test::There;

/// The parameter after three steps with g_t = (0.1 t, -0.2, 0.3 / t, 0.001).
template <class AnyAdam, class Options>
std::string after_three_steps(const Options& options) {
  Variable p = Variable::leaf(There::of<float>({0.5f, -1.25f, 2, 0.1f}));
  AnyAdam adam({p}, options);
  for (const double t : {1.0, 2.0, 3.0}) {
    p.set_grad(test::there(Tensor::of<double>({0.1 * t, -0.2, 0.3 / t, 0.001}).to(DType::float32)));
    adam.step();
  }
  std::string out;
  for (const float value : p.value().to_vector<float>())
    out += (out.empty() ? "" : " ") + hex8(value);
  return out;
}

template <class Options>
Options read(tests::GoldenOptions& given) {
  Options o;
  o.lr = given.number();
  o.beta1 = given.number();
  o.beta2 = given.number();
  o.eps = given.number();
  o.weight_decay = given.number();
  o.amsgrad = given.flag();
  o.maximize = given.flag();
  o.lerp = given.flag();
  return o;
}

void step_with(Optimizer& optimizer, Variable p, double gradient) {
  p.set_grad(Tensor::full(p.shape(), gradient, p.value().dtype(), p.device()));
  optimizer.step();
}

TEST_CASE("optim.adam: three steps give the bits of recent torch and of torch 1.13") {
  const auto adam = after_three_steps<Adam, AdamOptions>;
  CHECK(adam({.lr = .1}) == "3e54aa84 bf733333 3fdc1778 be4ccc02");
  CHECK(adam({.lr = .1, .lerp = false}) == "3e54aa83 bf733333 3fdc1778 be4ccc02");
  CHECK(adam({.lr = .1, .weight_decay = .01}) == "3e540b1e bf73363a 3fdbc960 be2b3126");
  CHECK(adam({.lr = .1, .weight_decay = .01, .lerp = false}) ==
        "3e540b1e bf73363a 3fdbc960 be2b3125");
  const auto adamw = after_three_steps<AdamW, AdamWOptions>;
  CHECK(adamw({.lr = .1}) == "3e536f66 bf725157 3fdb5cab be4ccbf6");
  CHECK(adamw({.lr = .1, .lerp = false}) == "3e536f65 bf725157 3fdb5cab be4ccbf6");
  CHECK(adamw({.lr = .1, .weight_decay = 0}) == adam({.lr = .1}));
}

TEST_CASE("optim.adam: 300 runs of seven steps, some without gradient, match torch") {
  CHECK(tests::check_golden_runs("adam", [](const Variable& p, tests::GoldenOptions& given) {
          return Adam({p}, read<AdamOptions>(given));
        }) == 150);
  CHECK(tests::check_golden_runs("adamw", [](const Variable& p, tests::GoldenOptions& given) {
          return AdamW({p}, read<AdamWOptions>(given));
        }) == 150);
}

TEST_CASE("optim.adam: groups have options of their own") {
  Variable a = Variable::leaf(There::ones({1})), b = Variable::leaf(There::ones({1}));
  AdamW adamw({{{a}, {.lr = .5, .weight_decay = .5}},
               {{b}, {.lr = .25, .weight_decay = 0, .amsgrad = true}}});
  CHECK(adamw.num_groups() == 2);
  a.set_grad(There::zeros({1}));
  b.set_grad(There::zeros({1}));
  adamw.step();
  CHECK(a.item<float>() == .75f);
  CHECK(b.item<float>() == 1);
  const OptimizerState state = adamw.state();
  REQUIRE(state.size() == 8);
  CHECK(state[7].first == "max_exp_avg_sq.1");
}

TEST_CASE("optim.adam: a saved run continues in the same bits, moments and steps by name") {
  Generator generator(7);
  Variable a = tests::uniform_leaf(33, generator), b = tests::uniform_leaf(5, generator);
  const AdamOptions options = {.lr = .1, .weight_decay = .01, .amsgrad = true};
  Adam first(ParameterList({{"a", a}, {"b", b}}), options);
  for (int step = 0; step < 3; ++step) {
    a.set_grad(tests::uniform_leaf(33, generator).value());
    if (step == 1) b.set_grad(tests::uniform_leaf(5, generator).value());
    first.step();
    first.zero_grad();
  }
  const OptimizerState state = first.state();
  REQUIRE(state.size() == 9);
  CHECK(state[1].first == "step.a");
  CHECK(state[1].second.item<std::int64_t>() == 3);
  CHECK(state[2].second.item<std::int64_t>() == 1);
  CHECK(state[3].first == "exp_avg.a");
  CHECK(state[5].first == "exp_avg_sq.a");
  CHECK(state[7].first == "max_exp_avg_sq.a");

  Variable c = Variable::leaf(a.value().clone()), d = Variable::leaf(b.value().clone());
  Adam second(ParameterList({{"b", d}, {"a", c}}), options);
  second.load_state(state);
  for (int step = 0; step < 3; ++step) {
    for (Variable* p : {&a, &b}) p->set_grad(tests::uniform_leaf(p->numel(), generator).value());
    c.set_grad(a.grad());
    d.set_grad(b.grad());
    first.step();
    second.step();
  }
  CHECK(equal_bits(a.value(), c.value()));
  CHECK(equal_bits(b.value(), d.value()));
}

TEST_CASE("optim.adam: steps are counted in 64 bits") {
  Variable p = Variable::leaf(There::zeros({1}));
  Adam adam(ParameterList({{"p", p}}), {.lr = .5});
  step_with(adam, p, 1);
  OptimizerState state = adam.state();
  state[1].second = There::full({}, 0x1p53, DType::int64);
  adam.load_state(state);
  CHECK(adam.state()[1].second.device().is_cpu());  // counters are the host's
  step_with(adam, p, 1);
  CHECK(adam.state()[1].second.item<std::int64_t>() == (std::int64_t{1} << 53) + 1);
}

TEST_CASE("optim.adam: a gradient whose square underflows moves nothing") {
  Variable p = Variable::leaf(There::ones({1}));
  Adam adam({p}, {.lr = .1});
  step_with(adam, p, 1e-30);
  CHECK(p.item<float>() == 1);
  CHECK(adam.state()[3].second.item<float>() == 0);
}

TEST_CASE("optim.adam: a gradient that is not finite changes neither moments nor steps") {
  Variable p = Variable::leaf(There::ones({1}));
  Adam adam({p}, {.lr = .1});
  step_with(adam, p, 1);
  const float before = p.item<float>(), average = adam.state()[2].second.item<float>();
  CHECK_THROWS_AS(step_with(adam, p, std::nan("")), StateError);
  CHECK(p.item<float>() == before);
  CHECK(adam.state()[1].second.item<std::int64_t>() == 1);
  CHECK(adam.state()[2].second.item<float>() == average);
}

TEST_CASE("optim.adam: float64 parameters step in double") {
  Variable p = Variable::leaf(Tensor::of<double>({1}));
  Adam adam({p}, {.lr = .1, .eps = 0});
  step_with(adam, p, .3);
  CHECK(p.item<double>() == doctest::Approx(.9).epsilon(1e-15));
  CHECK(adam.state()[2].second.dtype() == DType::float64);
}

TEST_CASE("optim.adam: a state with half of its slots is refused") {
  Variable p = Variable::leaf(There::ones({1}));
  Adam adam(ParameterList({{"p", p}}), {.lr = .5});
  step_with(adam, p, 1);
  OptimizerState state = adam.state();
  state.erase(state.begin() + 2);
  state[1].second = There::full({}, -1, DType::int64);
  CHECK_THROWS_WITH_AS(adam.load_state(state),
                       "[load_state] the state must fit the optimizer; step.p must be >= 0, got "
                       "-1; exp_avg.p is missing; nothing was loaded",
                       ValueError);
  CHECK(adam.state().size() == 4);
}

TEST_CASE("optim.adam: options outside their domain are refused") {
  const Variable p = Variable::leaf(There::zeros({1}));
  const auto make = [&](const AdamOptions& options) { Adam({p}, options); };
  const double nan = std::nan(""), inf = HUGE_VAL;
  CHECK_THROWS_WITH_AS(make({.beta1 = 1}), "[Adam] beta1 must lie in [0, 1), got 1", ValueError);
  CHECK_THROWS_WITH_AS(
      make({.beta2 = -.1}), "[Adam] beta2 must lie in [0, 1), got -0.1", ValueError);
  CHECK_THROWS_WITH_AS(
      make({.eps = nan}), "[Adam] eps must be >= 0 and finite in float32, got nan", ValueError);
  CHECK_THROWS_WITH_AS(
      AdamW({p}, {.beta2 = 1}), "[AdamW] beta2 must lie in [0, 1), got 1", ValueError);
  int num_refused = 0;
  for (const AdamOptions& options : {AdamOptions{.lr = -1},
                                     AdamOptions{.lr = nan},
                                     AdamOptions{.lr = inf},
                                     AdamOptions{.beta1 = -.1},
                                     AdamOptions{.beta1 = nan},
                                     AdamOptions{.beta2 = 1},
                                     AdamOptions{.beta2 = nan},
                                     AdamOptions{.eps = -1e-8},
                                     AdamOptions{.eps = inf},
                                     AdamOptions{.weight_decay = -.1},
                                     AdamOptions{.weight_decay = nan}}) {
    CHECK_THROWS_AS(make(options), ValueError);
    ++num_refused;
  }
  MESSAGE("refused ", num_refused, " further sets of options");
  make({.lr = 0, .beta1 = 0, .beta2 = 0, .eps = 0});
}

}  // namespace
}  // namespace accrue::optim
