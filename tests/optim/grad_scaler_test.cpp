// GradScaler: torch's scales, unscaling, skipped steps, misuse, saved state.
#include "accrue/optim/grad_scaler.h"

#include "accrue/autograd/ops/binary.h"
#include "accrue/autograd/ops/reduce.h"
#include "accrue/optim/clip.h"
#include "accrue/optim/sgd.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/golden.h"

#include <cmath>
#include <fstream>
#include <sstream>

namespace accrue::optim {
namespace {

using test::There;

Variable parameter() { return Variable::leaf(There::of<float>({1, 2, 3})); }

std::vector<double> numbers(const std::string& line) {
  std::istringstream words(line);
  std::vector<double> result;
  for (double number = 0; words >> number;) result.push_back(number);
  return result;
}

std::vector<float> values(const Tensor& tensor) { return tensor.to_vector<float>(); }

TEST_CASE("optim.grad_scaler: scales and skipped steps are torch's") {
  std::ifstream file(tests::golden_path("torch_autocast.txt"));
  REQUIRE(file);
  int num_runs = 0, num_steps = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("scaler ")) continue;
    const std::vector<double> options = numbers(line.substr(7));
    std::string overflows, scales;
    std::getline(file, overflows);
    std::getline(file, scales);
    const std::vector<double> wanted = numbers(scales);
    Variable p = Variable::leaf(There::zeros({1}));
    SGD sgd({p}, {.lr = 1});
    GradScaler scaler({.init_scale = options[0],
                       .growth_factor = options[1],
                       .backoff_factor = options[2],
                       .growth_interval = static_cast<std::int64_t>(options[3])});
    std::size_t step = 0;
    for (const double overflow : numbers(overflows)) {
      sgd.zero_grad();
      scaler.scale(sum(p)).backward();
      if (overflow != 0) p.set_grad(There::full({1}, HUGE_VAL));
      const float before = p.item<float>();
      CHECK(scaler.step(sgd) == (overflow == 0));
      CHECK(p.item<float>() == (overflow == 0 ? before - 1 : before));
      scaler.update();
      CHECK(scaler.scale() == wanted[step++]);
    }
    ++num_runs;
    num_steps += static_cast<int>(step);
  }
  CHECK(num_runs == 4);
  MESSAGE(num_steps << " steps");
}

TEST_CASE("optim.grad_scaler: gradients are multiplied with the rounded reciprocal, then clipped") {
  Variable p = parameter();
  SGD sgd({p}, {.lr = 0.5});
  GradScaler scaler({.init_scale = 1000});
  scaler.scale(sum(p * 3)).backward();
  CHECK(values(p.grad()) == std::vector<float>{3000, 3000, 3000});
  scaler.unscale(sgd);
  CHECK(p.grad().to_vector<float>()[0] == 3000 * (1 / 1000.0f));
  clip_grad_value({p}, 1);
  CHECK(scaler.step(sgd));
  CHECK(values(p.value()) == std::vector<float>{0.5, 1.5, 2.5});
}

TEST_CASE("optim.grad_scaler: an overflow of one optimizer lowers the scale, the other steps") {
  Variable p = parameter(), q = parameter();
  SGD first({p}, {.lr = 1}), second({q}, {.lr = 1});
  GradScaler scaler({.init_scale = 8});
  for (const double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    scaler.set_scale(8);
    p.set_grad(There::from(std::vector<float>{0, static_cast<float>(bad), 0}, {3}));
    q.set_grad(There::zeros({3}));
    CHECK_FALSE(scaler.step(first));
    CHECK(scaler.step(second));
    scaler.update();
    CHECK(scaler.scale() == 4);
  }
  CHECK(values(p.value()) == std::vector<float>{1, 2, 3});
}

TEST_CASE("optim.grad_scaler: the scale ends at the borders of float32") {
  GradScaler high({.init_scale = 0x1p127, .growth_interval = 1}), low({.init_scale = 0x1p-126});
  high.update(false);
  CHECK(high.scale() == 0x1p127);
  low.update(true);
  CHECK(low.scale() == 0x1p-126);
}

TEST_CASE("optim.grad_scaler: calls in a wrong order are refused") {
  Variable p = parameter();
  SGD sgd({p}, {.lr = 1});
  GradScaler scaler;
  CHECK_THROWS_WITH_AS(scaler.update(),
                       "[grad_scaler] gradients must be looked at before update(), got none; call "
                       "step(optimizer) first",
                       StateError);
  CHECK_THROWS_WITH_AS(scaler.step(sgd),
                       "[grad_scaler] a parameter must have a gradient, got none; call "
                       "scale(loss).backward() first",
                       StateError);
  p.set_grad(There::ones({3}));
  scaler.unscale(sgd);
  CHECK_THROWS_WITH_AS(scaler.unscale(sgd),
                       "[grad_scaler] gradients can be unscaled once, got a call after unscale(); "
                       "call update() at the end of each iteration",
                       StateError);
  CHECK(scaler.step(sgd));
  CHECK_THROWS_AS(scaler.unscale(sgd), StateError);
  CHECK_THROWS_WITH_AS(scaler.step(sgd),
                       "[grad_scaler] an optimizer can step once, got a second call; call update() "
                       "at the end of each iteration",
                       StateError);
  scaler.update();
  CHECK(scaler.step(sgd));
}

TEST_CASE("optim.grad_scaler: one that is not enabled changes nothing") {
  Variable p = parameter();
  SGD sgd({p}, {.lr = 1});
  GradScaler scaler({.enabled = false});
  CHECK(scaler.scale() == 1);
  scaler.scale(sum(p)).backward();
  scaler.unscale(sgd);
  scaler.unscale(sgd);
  CHECK(scaler.step(sgd));
  scaler.update();
  CHECK(values(p.value()) == std::vector<float>{0, 1, 2});
  CHECK(scaler.state().scale == 0);
}

TEST_CASE("optim.grad_scaler: a loaded state goes on with the same scales") {
  GradScaler first({.init_scale = 16, .growth_interval = 3}), second;
  first.update(false);
  first.update(false);
  second.load_state(first.state());
  for (GradScaler* scaler : {&first, &second}) {
    scaler->update(false);
    CHECK(scaler->scale() == 32);
  }
  GradScaler disabled({.enabled = false});
  CHECK_THROWS_WITH_AS(
      second.load_state(disabled.state()),
      "[grad_scaler] the state must be of an enabled scaler, got one of a run without fp16; train "
      "with the mixed_precision of that run, or leave the scaler's state out",
      ValueError);
  GradScalerState wrong = first.state();
  wrong.growth_tracker = 3;
  CHECK_THROWS_AS(second.load_state(wrong), ValueError);
  CHECK(second.scale() == 32);
  disabled.load_state(first.state());
  CHECK(disabled.scale() == 1);
}

TEST_CASE("optim.grad_scaler: options outside their domain are refused") {
  for (const double scale : {0.0, -1.0, 1e-45, 1e39, std::nan("")})
    CHECK_THROWS_AS(GradScaler({.init_scale = scale}), ValueError);
  for (const double growth : {1.0, 0.5, HUGE_VAL, std::nan("")})
    CHECK_THROWS_AS(GradScaler({.growth_factor = growth}), ValueError);
  for (const double backoff : {0.0, 1.0, -0.5, std::nan("")})
    CHECK_THROWS_AS(GradScaler({.backoff_factor = backoff}), ValueError);
  CHECK_THROWS_AS(GradScaler({.growth_interval = 0}), ValueError);
  GradScaler scaler;
  CHECK_THROWS_WITH_AS(scaler.set_scale(0),
                       "[grad_scaler] scale must be positive and a normal float32, got 0",
                       ValueError);
}

}  // namespace
}  // namespace accrue::optim
