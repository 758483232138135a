// What a window refuses, and that a refused call leaves gradients as they were (contract 8, 13).
#include "accrue/autograd/autograd.h"
#include "accrue/autograd/engine.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

using namespace accrue;
using accrue::test::There;

namespace {

WindowSpan span_of(std::int64_t size, int lanes = 1) {
  return {{.nominal_size = size, .count = lanes}, size, 0, lanes};
}

Variable batch_of(std::initializer_list<float> values) {
  return Variable(There::of<float>(values).with_sample_axis({0, 1}));
}

void backward(const Variable& y) { Engine({}).run(y, There::ones(y.shape(), y.dtype())); }

std::vector<float> values(const Tensor& x) { return x.to_vector<float>(); }

}  // namespace

TEST_CASE("autograd.window_errors: micro-batches need an open window and do not nest") {
  Window window;
  CHECK_THROWS_WITH_AS(
      MicroBatch(window, 0, 1), "[accumulate] the window must be open", StateError);
  window.begin(span_of(2));
  const MicroBatch scope(window, 0, 1);
  CHECK_THROWS_WITH_AS(MicroBatch(window, 1, 2),
                       "[accumulate] micro-batches must not nest, got a second one on this thread; "
                       "pass all models to one accumulate()",
                       StateError);
  CHECK(MicroBatch::current() == &scope);
}

TEST_CASE("autograd.window_errors: a micro-batch has one backward pass") {
  Window window;
  window.begin(span_of(1));
  MicroBatch scope(window, 0, 1);
  scope.claim_backward();
  CHECK_THROWS_WITH_AS(scope.claim_backward(),
                       "[backward] a micro-batch has one backward pass, got a second; add the "
                       "losses first",
                       StateError);
}

TEST_CASE("autograd.window_errors: plain backward is refused inside a micro-batch") {
  const Variable w = Variable::leaf(There::of<float>({1}));
  Window window;
  window.begin(span_of(1));
  const MicroBatch scope(window, 0, 1);
  CHECK_THROWS_WITH_AS((batch_of({1}) * w).backward(),
                       "[backward] inside accumulate() gradients must go through "
                       "Accelerator::backward(loss)",
                       StateError);
}

TEST_CASE("autograd.window_errors: a finished gradient must be dropped before the next window") {
  Variable w = Variable::leaf(There::of<float>({1}));
  Window window;
  const auto run_window = [&] {
    window.begin(span_of(1));
    const MicroBatch scope(window, 0, 1);
    backward(batch_of({2}) * w);
  };
  run_window();
  window.finish(1);
  CHECK_THROWS_WITH_AS(run_window(),
                       "[backward] a finished gradient must be dropped before the next window adds "
                       "to it; call zero_grad() after step()",
                       StateError);
  window.drop();
  CHECK(values(w.grad()) == std::vector<float>{2});
  w.zero_grad();
  run_window();
  window.finish(1);
  CHECK(values(w.grad()) == std::vector<float>{2});
}

TEST_CASE("autograd.window_errors: a poisoned window does not finish, a dropped one is clean") {
  const Variable w = Variable::leaf(There::of<float>({1}));
  w.register_hook([](const Tensor&) -> Tensor { throw ValueError("stop"); });
  Window window;
  window.begin(span_of(2));
  {
    const MicroBatch scope(window, 0, 1);
    backward(batch_of({2}) * w);
  }
  CHECK_THROWS_WITH_AS(window.finish(1), "stop", ValueError);
  CHECK_THROWS_WITH_AS(window.finish(1),
                       "[window] the gradients of a window are finished once, got an end that "
                       "threw; call zero_grad() to drop the window",
                       StateError);
  CHECK(window.is_poisoned());
  window.drop();
  CHECK(!window.is_poisoned());
  CHECK(!w.grad().defined());
}

TEST_CASE("autograd.window_errors: a hook that throws at the window's end poisons the window") {
  const Variable first = Variable::leaf(There::of<float>({1}));
  const Variable second = Variable::leaf(There::of<float>({1}));
  bool throws = true;
  second.register_hook([&](const Tensor& gradient) {
    if (throws) throw ValueError("stop");
    return gradient;
  });
  Window window;
  window.begin(span_of(1));
  {
    const MicroBatch scope(window, 0, 1);
    backward(batch_of({3}) * second + batch_of({2}) * first);
  }
  CHECK_THROWS_WITH_AS(window.finish(1), "stop", ValueError);
  throws = false;
  CHECK(window.is_poisoned());
  CHECK_THROWS_AS(window.finish(1), StateError);
  window.drop();
  CHECK(!window.is_open());
}

TEST_CASE("autograd.window_errors: a parameter belongs to one window at a time") {
  const Variable w = Variable::leaf(There::of<float>({1}));
  Window first, second;
  first.begin(span_of(1));
  second.begin(span_of(1));
  {
    const MicroBatch scope(first, 0, 1);
    backward(batch_of({2}) * w);
  }
  {
    const MicroBatch scope(second, 0, 1);
    const Variable y = batch_of({3}) * w;
    CHECK_THROWS_WITH_AS(backward(y),
                         "[backward] a parameter must belong to one window at a time, got a second "
                         "window",
                         StateError);
  }
  CHECK_THROWS_WITH_AS(
      (w * 1.0).backward(),
      "[backward] a plain backward pass must not reach a parameter whose window is "
      "open; finish the window or use no_grad",
      StateError);
  first.finish(1);
  CHECK(values(w.grad()) == std::vector<float>{2});
}

TEST_CASE("autograd.window_errors: a gradient that arrives whole is refused") {
  const Variable w = Variable::leaf(There::of<float>({1, 2}));
  Window window;
  window.begin(span_of(1));
  const MicroBatch scope(window, 0, 1);
  const char* message =
      "[backward] in a window a parameter must be used by operations that add rows (linear, or "
      "arithmetic with the batch), got a gradient that arrived whole; use invariant = false";
  CHECK_THROWS_WITH_AS(backward(sum(w)), message, StateError);
  CHECK_THROWS_WITH_AS(backward(relu(w)), message, StateError);
  CHECK_THROWS_WITH_AS(backward(select(w, 0, 0)), message, StateError);
}

TEST_CASE("autograd.window_errors: rows must be those of the micro-batch") {
  const Variable w = Variable::leaf(There::of<float>({{1, 1}}));
  const Variable scale = Variable::leaf(There::of<float>({1}));
  const auto batch = [](std::int64_t n) {
    return Variable(There::ones({n, 2}).with_sample_axis({0, 1}));
  };
  Window window;
  window.begin(span_of(4, 2));
  const MicroBatch scope(window, 0, 2);
  CHECK_THROWS_WITH_AS(backward(linear(batch(3), w)),
                       "[backward] a parameter's gradient must have the rows of the micro-batch, "
                       "got 3 rows for 2 samples of 1; use the batch of this scope",
                       StateError);
  CHECK_THROWS_WITH_AS(backward(batch(1) * scale),
                       "[backward] a parameter's gradient must have the rows of the micro-batch, "
                       "got 1 rows for 2 samples of 1; use the batch of this scope",
                       StateError);
}

TEST_CASE("autograd.window_errors: micro-batches come in the order of their positions") {
  Window window;
  window.begin({{.nominal_size = 8, .count = 4}, 7, 1, 4});  // lanes 1 to 3: positions 2 to 6
  const auto open = [&](std::int64_t begin, std::int64_t end) {
    const MicroBatch scope(window, begin, end);
  };
  open(2, 4);
  const char* order =
      "[accumulate] micro-batches must come in order of their positions, which lie in [4, 7) now, "
      "got [";
  CHECK_THROWS_WITH_AS(open(3, 5), (std::string(order) + "3, 5)").c_str(), StateError);
  CHECK_THROWS_WITH_AS(open(5, 8), (std::string(order) + "5, 8)").c_str(), StateError);
  CHECK_THROWS_WITH_AS(open(6, 5), (std::string(order) + "6, 5)").c_str(), StateError);
  open(4, 4);
  open(5, 7);
  window.begin({{.nominal_size = 8, .count = 4}, 7, 1, 4});
  CHECK_THROWS_AS(open(0, 3), StateError);
  open(2, 3);
}
