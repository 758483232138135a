// Windows: what a parameter's gradient is made of, and when it exists (contract 5, 6, 8, 9).
#include "accrue/autograd/window.h"

#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/binary.h"
#include "accrue/autograd/ops/linear.h"
#include "accrue/autograd/ops/unary.h"
#include "accrue/autograd/ops/views.h"
#include "accrue/autograd/window_sum.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/window_reference.h"

#include <cmath>
#include <limits>
#include <thread>

using namespace accrue;
using namespace accrue::test;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

WindowSpan span_of(std::int64_t size, int lanes = 1) {
  return {{.nominal_size = size, .count = lanes}, size, 0, lanes};
}

Tensor samples(const Tensor& x) { return x.with_sample_axis({0, 1}); }
Variable batch_of(std::initializer_list<float> values) {
  return Variable(samples(There::of<float>(values)));
}

/// One backward pass; every element of the result has gradient 1.
void backward(const Variable& y) { Engine({}).run(y, There::ones(y.shape(), y.dtype())); }

std::vector<float> values(const Tensor& x) { return x.to_vector<float>(); }

}  // namespace

TEST_CASE("autograd.window: uses of a parameter add up in forward order, after the tree") {
  // In forward order (2^24 + 1) - 2^24 is 0; in backward order it would be 1.
  const Variable w = Variable::leaf(There::of<float>({1}));
  for (const bool in_one_lane : {false, true}) {
    Window window;
    window.begin(span_of(2, in_one_lane ? 1 : 2));
    for (const std::int64_t i : {0, 1}) {
      const MicroBatch scope(window, i, i + 1);
      const Variable first = batch_of({8388608}) * w;
      const Variable second = batch_of({0.5F}) * w;
      const Variable third = batch_of({-8388608}) * w;
      backward(first + second + third);
    }
    window.finish(1);
    CHECK(values(w.grad()) == std::vector<float>{0});
    Variable(w).zero_grad();
  }
}

TEST_CASE("autograd.window: a parameter may be unused in some micro-batches or in all") {
  const Variable w = Variable::leaf(There::of<float>({1}));
  const Variable never = Variable::leaf(There::of<float>({1}));
  Window window;
  window.begin(span_of(6, 2));
  for (std::int64_t i = 0; i < 6; i += 2) {
    const MicroBatch scope(window, i, i + 2);
    if (i != 2) backward(batch_of({1, 2}) * w);
  }
  window.finish(2);
  CHECK(values(w.grad()) == std::vector<float>{3});
  CHECK(!never.grad().defined());
}

TEST_CASE("autograd.window: rows without gradient add nothing, whatever their values") {
  const Variable w = Variable::leaf(There::of<float>({{1, 1}}));
  const Variable scale = Variable::leaf(There::of<float>({2}));
  Window window;
  window.begin(span_of(3, 2));
  {
    const MicroBatch scope(window, 0, 3);
    const Variable x(samples(There::of<float>({{1, 2}, {kInf, NAN}, {3, 4}})));
    const Variable y = linear(x, w) * scale;
    Engine({}).run(y, There::of<float>({{1}, {0}, {-0.0F}}));
  }
  window.finish(1);
  CHECK(values(w.grad()) == std::vector<float>{2, 4});
  CHECK(values(scale.grad()) == std::vector<float>{3});
}

TEST_CASE("autograd.window: a gradient of -0 becomes +0") {
  const Variable w = Variable::leaf(There::of<float>({{1}}));
  Window window;
  window.begin(span_of(1));
  {
    const MicroBatch scope(window, 0, 1);
    const Variable x(samples(There::of<float>({{1e-30F}})));
    Engine({}).run(linear(x, w), There::of<float>({{-1e-30F}}));
  }
  window.finish(1);
  CHECK(w.grad().item<float>() == 0);
  CHECK(!std::signbit(w.grad().item<float>()));
}

TEST_CASE("autograd.window: a gradient is readable at the window's end only") {
  const Variable w = Variable::leaf(There::of<float>({1}));
  Window window;
  window.begin(span_of(2));
  for (const std::int64_t i : {0, 1}) {
    const MicroBatch scope(window, i, i + 1);
    backward(batch_of({1}) * w);
    CHECK_THROWS_WITH_AS(w.grad(),
                         "[grad] gradients exist when the window ends, got a window that still "
                         "accumulates; read them where sync_gradients() is true",
                         StateError);
  }
  window.finish(2);
  CHECK(values(w.grad()) == std::vector<float>{1});
}

TEST_CASE("autograd.window: hooks see the divided gradient once, at the window's end") {
  const Variable w = Variable::leaf(There::of<float>({1}));
  std::vector<float> seen;
  w.register_hook([&](const Tensor& gradient) {
    seen.push_back(gradient.item<float>());
    return There::full(gradient.shape(), 7);
  });
  Window window;
  window.begin(span_of(4, 2));
  for (const std::int64_t i : {0, 2}) {
    const MicroBatch scope(window, i, i + 2);
    backward(batch_of({1, 2}) * w);
    CHECK(seen.empty());
  }
  window.finish(4);
  CHECK(seen == std::vector<float>{1.5F});
  CHECK(values(w.grad()) == std::vector<float>{7});
}

TEST_CASE("autograd.window: a dropped window leaves nothing behind") {
  const Variable w = Variable::leaf(There::of<float>({1}));
  Window window;
  for (const bool destroyed : {false, true}) {
    Window other;
    Window& dropped = destroyed ? other : window;
    dropped.begin(span_of(2));
    {
      const MicroBatch scope(dropped, 0, 1);
      backward(batch_of({100}) * w);
    }
    if (!destroyed) window.drop();
  }
  CHECK(!w.grad().defined());
  CHECK(!window.is_open());
  window.begin(span_of(2));
  {
    const MicroBatch scope(window, 0, 2);
    backward(batch_of({1, 2}) * w);
  }
  window.begin(span_of(1));  // a new window drops the one before
  {
    const MicroBatch scope(window, 0, 1);
    backward(batch_of({5}) * w);
  }
  window.finish(1);
  CHECK(values(w.grad()) == std::vector<float>{5});
}

TEST_CASE("autograd.window: forward passes under no_grad are no uses") {
  const Variable w = Variable::leaf(There::of<float>({2}));
  Window window;
  window.begin(span_of(2));
  for (const std::int64_t i : {0, 1}) {
    const MicroBatch scope(window, i, i + 1);
    if (i == 1) {
      const NoGrad no_grad;
      CHECK(!(batch_of({1}) * w).requires_grad());
    }
    backward(batch_of({3}) * w);
  }
  window.finish(1);
  CHECK(values(w.grad()) == std::vector<float>{6});
}

TEST_CASE("autograd.window: parameters of size 0 and windows of empty micro-batches work") {
  const Variable w = Variable::leaf(There::zeros({2, 0}));
  const Variable b = Variable::leaf(There::zeros({2}));
  Window window;
  window.begin(span_of(2, 2));
  for (const std::int64_t i : {0, 1, 2}) {
    const MicroBatch scope(window, i, std::min<std::int64_t>(i + 1, 2));
    backward(linear(Variable(samples(There::zeros({i < 2 ? 1 : 0, 0}))), w, b));
  }
  window.finish(1);
  CHECK(w.grad().shape() == Shape{2, 0});
  CHECK(values(b.grad()) == std::vector<float>{2, 2});
  Variable(b).zero_grad();
  window.begin(span_of(2, 2));
  {
    const MicroBatch scope(window, 0, 0);
    backward(linear(Variable(samples(There::zeros({0, 0}))), w.detach(), b));
  }
  window.finish(1);
  CHECK(values(b.grad()) == std::vector<float>{0, 0});
}

TEST_CASE("autograd.window: a micro-batch belongs to its thread") {
  Window window;
  window.begin(span_of(1));
  const MicroBatch scope(window, 0, 1);
  CHECK(MicroBatch::current() == &scope);
  const MicroBatch* elsewhere = &scope;
  std::thread([&] { elsewhere = MicroBatch::current(); }).join();
  CHECK(elsewhere == nullptr);
}

TEST_CASE("autograd.window: the sum of row losses is a tree over lanes, then one number") {
  std::mt19937_64 random(21);
  int num_sums = 0;
  for (const int lanes : {1, 2, 8}) {
    const WindowSpan span = span_of(13, lanes);
    std::vector<float> rows(26);
    for (float& row : rows) row = static_cast<float>(random() % 4096) / 7;
    std::vector<std::vector<float>> sums;
    for (int lane = 0; lane < lanes; ++lane) {
      const auto [begin, end] = lane_positions(span, lane);
      sums.push_back({0});
      for (std::int64_t i = 2 * begin; i < 2 * end; ++i) {
        sums.back()[0] += rows[static_cast<std::size_t>(i)];
      }
    }
    const double wanted = tree(sums)[0];
    const Tensor whole = There::from(rows, {26});
    for (const std::vector<Range>& split : splits_of(13, random)) {
      Window window;
      window.begin(span);
      WindowSum sum;
      for (const auto& [begin, end] : split) {
        const MicroBatch scope(window, begin, end);
        sum.add(scope, whole.narrow(0, 2 * begin, 2 * (end - begin)), 2);
      }
      CHECK(sum.finish() == wanted);
      CHECK(sum.finish() == 0);
      ++num_sums;
    }
  }
  MESSAGE("window sums equal the tree over lanes: " << num_sums << " splits");
}
