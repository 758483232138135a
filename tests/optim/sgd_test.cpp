// SGD: torch's bits, groups, skipped parameters, refused options.
#include "accrue/optim/sgd.h"

#include "accrue/autograd/ops/linear.h"
#include "accrue/autograd/ops/losses.h"
#include "accrue/core/bits.h"
#include "accrue/core/generator.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/golden.h"

#include <cmath>
#include <fstream>
#include <limits>

namespace accrue::optim {
namespace {

using test::There;

std::string bits(const Tensor& tensor) {
  std::string out;
  for (const float value : tensor.to_vector<float>()) out += (out.empty() ? "" : " ") + hex8(value);
  return out;
}

Variable uniform_leaf(std::int64_t n, Generator& generator) {
  std::vector<float> values(static_cast<std::size_t>(n));
  generator.uniform(std::span<float>(values), -1, 1);
  return Variable::leaf(There::from(values, {n}));
}

/// The parameter after three steps with g_t = (0.1 t, -0.2, 0.3 / t, 0.001).
std::string after_three_steps(const SgdOptions& options) {
  Variable p = Variable::leaf(There::of<float>({0.5f, -1.25f, 2, 0.1f}));
  SGD sgd({p}, options);
  for (const double t : {1.0, 2.0, 3.0}) {
    p.set_grad(test::there(Tensor::of<double>({0.1 * t, -0.2, 0.3 / t, 0.001}).to(DType::float32)));
    sgd.step();
  }
  return bits(p.value());
}

TEST_CASE("optim.sgd: three steps give torch's bits with every kind of option") {
  CHECK(after_three_steps({.lr = .1}) == "3ee147ae bf9851ec 3ff8f5c3 3dcc2f83");
  CHECK(after_three_steps({.lr = .1, .momentum = .9}) == "3ecf4f0d bf91a36e 3ff0aa65 3dcba6ad");
  CHECK(after_three_steps({.lr = .1, .momentum = .9, .dampening = .5}) ==
        "3ee0b781 bf9559b4 3ff3212e 3dcbf2b3");
  CHECK(after_three_steps({.lr = .1, .momentum = .9, .nesterov = true}) ==
        "3eb5753b bf8b6502 3feb28b6 3dcb26ce");
  CHECK(after_three_steps({.lr = .1, .weight_decay = .01}) ==
        "3ee08882 bf97d920 3ff833ce 3dcb928a");
  CHECK(after_three_steps({.lr = .1, .momentum = .9, .weight_decay = .01, .nesterov = true}) ==
        "3eb37d97 bf8a2500 3fe92604 3dc98242");
  CHECK(after_three_steps({.lr = .1, .momentum = .9, .maximize = true}) ==
        "3f185879 bfae5c92 4007aace 3dcdf2ed");
}

TEST_CASE("optim.sgd: 150 runs of seven steps, some without gradient, match torch 1.13.1") {
  std::ifstream file(accrue::tests::golden_path("torch_sgd.txt"));
  REQUIRE(file);
  std::uint64_t seed = 0;
  std::int64_t n = 0;
  int steps = 0, num_runs = 0;
  SgdOptions o;
  std::string expected;
  while (file >> seed >> n >> steps >> o.lr >> o.momentum >> o.dampening >> o.weight_decay) {
    double nesterov = 0, maximize = 0;
    file >> nesterov >> maximize >> expected;
    o.nesterov = nesterov != 0;
    o.maximize = maximize != 0;
    Generator generator(seed);
    Variable p = uniform_leaf(n, generator);
    SGD sgd({p}, o);
    for (int step = 0; step < steps; ++step) {
      sgd.zero_grad();
      if (step % 3 != 2) p.set_grad(uniform_leaf(n, generator).value());
      sgd.step();
    }
    const std::vector<float> values = p.value().to_vector<float>();
    CAPTURE(num_runs);
    CHECK(hex16(hash_bits(std::span(values))) == expected);
    ++num_runs;
  }
  CHECK(num_runs == 150);
  MESSAGE("replayed ", num_runs, " runs");
}

TEST_CASE("optim.sgd: the documented example ends at 2.04 in the documented bits") {
  const Variable w = Variable::leaf(There::zeros({1, 1}));
  const Tensor x = There::of<float>({1, 2, 3, 4, 5, 6, 7, 8}).view({8, 1});
  const Tensor y = There::of<float>({2, 4, 6, 8, 10, 12, 14, 16}).view({8, 1});
  SGD sgd({w}, {.lr = .02});
  const Variable loss = mse_loss(linear(Variable(x), w), Variable(y));
  CHECK(bits(loss.value()) == "42cc0000");
  loss.backward();
  CHECK(bits(w.grad()) == "c2cc0000");
  sgd.step();
  CHECK(bits(w.value()) == "40028f5c");
}

TEST_CASE("optim.sgd: groups have options of their own") {
  Variable a = Variable::leaf(There::ones({1})), b = Variable::leaf(There::ones({1}));
  SGD sgd({{{a}, {.lr = .5}}, {{b}, {.lr = .25, .momentum = .5}}});
  CHECK(sgd.num_groups() == 2);
  for (int step = 0; step < 2; ++step) {
    a.set_grad(There::ones({1}));
    b.set_grad(There::ones({1}));
    sgd.step();
  }
  CHECK(a.item<float>() == 0);
  CHECK(b.item<float>() == 1 - .25f - .25f * 1.5f);
}

TEST_CASE("optim.sgd: float64 parameters step in double") {
  Variable p = Variable::leaf(Tensor::of<double>({1}));
  p.set_grad(Tensor::of<double>({1}));
  SGD({p}, {.lr = .1}).step();
  CHECK(p.item<double>() == std::fma(-.1, 1.0, 1.0));
}

TEST_CASE("optim.sgd: gradients of any layout are read by element") {
  Variable p = Variable::leaf(There::zeros({2, 2}));
  p.set_grad(There::of<float>({{1, 2}, {3, 4}}).transpose(0, 1));
  SGD({p}, {.lr = 1}).step();
  CHECK(p.value().to_vector<float>() == std::vector<float>{-1, -3, -2, -4});
}

TEST_CASE("optim.sgd: options outside their domain are refused") {
  const Variable p = Variable::leaf(There::zeros({1}));
  const auto make = [&](const SgdOptions& options) { SGD({p}, options); };
  const double nan = std::nan(""), inf = HUGE_VAL;
  CHECK_THROWS_WITH_AS(
      make({.lr = -1}), "[SGD] lr must be >= 0 and finite in float32, got -1", ValueError);
  CHECK_THROWS_WITH_AS(make({.momentum = nan}),
                       "[SGD] momentum must be >= 0 and finite in float32, got nan",
                       ValueError);
  CHECK_THROWS_WITH_AS(make({.weight_decay = inf}),
                       "[SGD] weight_decay must be >= 0 and finite in float32, got inf",
                       ValueError);
  CHECK_THROWS_WITH_AS(
      make({.dampening = nan}), "[SGD] dampening must be finite, got nan", ValueError);
  CHECK_THROWS_WITH_AS(make({.momentum = .9, .dampening = .5, .nesterov = true}),
                       "[SGD] Nesterov needs momentum > 0 and dampening 0, got momentum 0.9 and "
                       "dampening 0.5",
                       ValueError);
  int num_refused = 0;
  for (const SgdOptions& options : {SgdOptions{.lr = nan},
                                    SgdOptions{.lr = inf},
                                    SgdOptions{.lr = 1e39},
                                    SgdOptions{.momentum = -.1},
                                    SgdOptions{.momentum = inf},
                                    SgdOptions{.dampening = inf},
                                    SgdOptions{.weight_decay = -.1},
                                    SgdOptions{.weight_decay = nan},
                                    SgdOptions{.nesterov = true}}) {
    CHECK_THROWS_AS(make(options), ValueError);
    ++num_refused;
  }
  MESSAGE("refused ", num_refused, " further sets of options");
  make({.lr = 0, .momentum = 1.5, .dampening = -1});
}

}  // namespace
}  // namespace accrue::optim
