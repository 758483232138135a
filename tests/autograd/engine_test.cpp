// The backward pass: order, errors, release, hooks, deep and wide graphs (edge cases 44 to 72).
#include "accrue/autograd/engine.h"

#include "accrue/autograd/autograd.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <pthread.h>

#include <thread>
#include <vector>

using namespace accrue;
using accrue::test::There;

namespace {

Variable leaf(std::initializer_list<float> values) {
  return Variable::leaf(There::of<float>(values));
}

std::vector<float> values(const Tensor& tensor) { return tensor.to_vector<float>(); }

/// Runs `body` on a thread with a 256 KiB stack.
template <class Body>
void on_small_stack(Body body) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  REQUIRE(pthread_attr_setstacksize(&attributes, 256 * 1024) == 0);
  pthread_t thread;
  auto run = [](void* argument) -> void* {
    (*static_cast<Body*>(argument))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, &body) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

constexpr int kDeep = 1'000'000;

}  // namespace

TEST_CASE("autograd.engine: a gradient must be given for more than one element") {
  const Variable x = leaf({1, 2});
  CHECK_THROWS_WITH_AS((x * 2.0).backward(),
                       "[backward] a gradient must be given unless the variable has one element, "
                       "got shape [2]",
                       StateError);
}

TEST_CASE("autograd.engine: variables without a graph have no backward") {
  const Variable x = leaf({1});
  const char* message =
      "[backward] the variable must come from recorded operations on variables that require grad, "
      "got one without a graph; check no_grad and detach";
  CHECK_THROWS_WITH_AS(Variable(There::of<float>({1})).backward(), message, StateError);
  CHECK_THROWS_WITH_AS((x * 2.0).detach().backward(), message, StateError);
  const Variable y = [&] {
    const NoGrad no_grad;
    return x * 2.0;
  }();
  CHECK_THROWS_WITH_AS(y.backward(), message, StateError);
  CHECK(!x.grad().defined());
}

TEST_CASE("autograd.engine: the starting gradient has the variable's shape and dtype") {
  const Variable y = leaf({1, 2}) * 2.0;
  CHECK_THROWS_WITH_AS(y.backward(There::of<float>({1})),
                       "[backward] gradient must have the variable's shape [2], got [1]",
                       ShapeError);
  CHECK_THROWS_WITH_AS(y.backward(Tensor::of<double>({1, 1})),
                       "[backward] gradient must be float32 like the variable, got float64",
                       DTypeError);
}

TEST_CASE("autograd.engine: a graph is walked once unless it is retained") {
  const Variable x = leaf({2});
  const Variable product = x * x;
  product.backward({}, {.retain_graph = true});
  product.backward();
  CHECK(values(x.grad()) == std::vector<float>{8});
  CHECK_THROWS_WITH_AS(product.backward(),
                       "[backward] a graph can be walked once, got a second pass through mul; set "
                       "retain_graph at the first",
                       StateError);
  const Variable sum = x + x;  // saves nothing, and is refused all the same
  sum.backward();
  CHECK_THROWS_AS(sum.backward(), StateError);
  CHECK(values(x.grad()) == std::vector<float>{10});
}

TEST_CASE("autograd.engine: a saved tensor that was written is named") {
  Variable x = leaf({2});
  const Variable y = x * x;
  const std::uint64_t version = x.value().version();
  x.mutable_value().fill(3);
  const std::string message =
      text("[mul] a tensor saved for backward must not be written before it, got version ",
           version + 1,
           " instead of ",
           version,
           "; write to a clone() or after backward");
  CHECK_THROWS_WITH_AS(y.backward(), message.c_str(), StateError);
  CHECK(!x.grad().defined());
}

TEST_CASE("autograd.engine: only floating point variables have gradients") {
  CHECK_THROWS_WITH_AS(Variable::leaf(There::of<std::int64_t>({1})),
                       "[leaf] only float32 and float64 have gradients, got int64; convert with "
                       "to()",
                       DTypeError);
}

TEST_CASE("autograd.engine: set_grad takes the shape and dtype of the variable only") {
  Variable x = leaf({1, 2});
  CHECK_THROWS_WITH_AS(x.set_grad(There::of<float>({1})),
                       "[set_grad] gradient must have the shape [2] of its variable, got [1]",
                       ShapeError);
  CHECK_THROWS_WITH_AS(x.set_grad(Tensor::of<double>({1, 2})),
                       "[set_grad] gradient must be float32 like its variable, got float64",
                       DTypeError);
  x.set_grad(There::of<float>({3, 4}));
  CHECK(values(x.grad()) == std::vector<float>{3, 4});
}

TEST_CASE("autograd.engine: only leaves change requires_grad") {
  Variable y = leaf({1}) * 2.0;
  CHECK_THROWS_WITH_AS(y.set_requires_grad(false),
                       "[set_requires_grad] only leaves can change, got the result of mul; use "
                       "detach()",
                       StateError);
  Variable x = leaf({1});
  x.set_requires_grad(false);
  CHECK(!(x * 2.0).requires_grad());
}

TEST_CASE("autograd.engine: uses add up, also over 2^60 paths") {
  const Variable x = leaf({1});
  (x + x).backward();
  CHECK(values(x.grad()) == std::vector<float>{2});
  const Variable z = leaf({1});
  Variable y = z;
  for (int i = 0; i < 60; ++i) y = y + y;
  y.backward();
  CHECK(values(z.grad()) == std::vector<float>{0x1p60F});
}

TEST_CASE("autograd.engine: a fan-in of 100,000 is exact") {
  const Variable x = leaf({1});
  const std::vector<Variable> copies(100'000, x);
  sum(cat(copies)).backward();
  CHECK(values(x.grad()) == std::vector<float>{100'000});
}

TEST_CASE("autograd.engine: a chain of 1,000,000 nodes runs and dies on a small stack") {
  on_small_stack([] {
    const Variable x = leaf({1});
    Variable y = x;
    for (int i = 0; i < kDeep; ++i) y = neg(y);
    y.backward();
    CHECK(values(x.grad()) == std::vector<float>{1});
  });
}

TEST_CASE("autograd.engine: a chain of 1,000,000 nodes dies without backward, also by hooks") {
  on_small_stack([] {
    const Variable x = leaf({1});
    Variable y = x;
    for (int i = 0; i < kDeep; ++i) y = neg(y);
    y = Variable();
    Variable z = x;
    for (int i = 0; i < kDeep / 10; ++i) {
      const Variable previous = z;
      z = Variable(There::of<float>({1})) * x;
      z.register_hook([previous](const Tensor& gradient) { return gradient; });
    }
    z = Variable();
    CHECK(!x.grad().defined());
  });
}

TEST_CASE("autograd.engine: gradients of a sum do not share memory") {
  const Variable a = leaf({1, 2});
  const Variable b = leaf({3, 4});
  const Tensor start = There::of<float>({5, 6});
  (a + b).backward(start);
  CHECK(!a.grad().shares_storage(b.grad()));
  CHECK(!a.grad().shares_storage(start));
  CHECK(values(a.grad()) == values(b.grad()));
}

TEST_CASE("autograd.engine: broadcast operands get reduced gradients, also of size 0") {
  const Variable a = Variable::leaf(There::of<float>({{1, 2, 3}, {4, 5, 6}}));
  const Variable b = leaf({1, 1, 2});
  sum(a * b).backward();
  CHECK(values(b.grad()) == std::vector<float>{5, 7, 9});
  const Variable column = Variable::leaf(There::of<float>({{1}, {2}}));
  sum(a * neg(column)).backward();
  CHECK(values(column.grad()) == std::vector<float>{-6, -15});
  const Variable one = Variable::leaf(There::ones({1, 3}));
  sum(one * Variable(There::zeros({0, 3}))).backward();
  CHECK(values(one.grad()) == std::vector<float>{0, 0, 0});
}

TEST_CASE("autograd.engine: grad() needs every input unless unused ones are allowed") {
  const Variable x = leaf({3});
  const Variable unused = leaf({1});
  const Variable inputs[] = {x, unused};
  const Variable y = x * x;
  CHECK_THROWS_WITH_AS(grad(y, inputs, {}, {.retain_graph = true}),
                       "[grad] the output must depend on every input, got input 1 unused; set "
                       "allow_unused",
                       StateError);
  const std::vector<Tensor> gradients = grad(y, inputs, {}, {}, true);
  CHECK(values(gradients[0]) == std::vector<float>{6});
  CHECK(!gradients[1].defined());
  CHECK(!x.grad().defined());
}

TEST_CASE("autograd.engine: grad() reaches variables inside the graph") {
  const Variable x = leaf({3});
  const Variable middle = x * x;
  const Variable inputs[] = {middle, x};
  const std::vector<Tensor> gradients = grad(middle * middle, inputs);
  CHECK(values(gradients[0]) == std::vector<float>{18});
  CHECK(values(gradients[1]) == std::vector<float>{108});
}

TEST_CASE("autograd.engine: an exception changes no gradient and leaves the engine usable") {
  const Variable x = leaf({1});
  const Variable w = leaf({2});
  (x * w).backward();
  const Variable middle = x * w;
  middle.register_hook([](const Tensor&) -> Tensor { throw ValueError("stop"); });
  CHECK_THROWS_WITH_AS((middle * w).backward(), "stop", ValueError);
  CHECK(values(w.grad()) == std::vector<float>{1});
  CHECK(values(x.grad()) == std::vector<float>{2});
  (x * w).backward();
  CHECK(values(w.grad()) == std::vector<float>{2});
}

TEST_CASE("autograd.engine: hooks see and replace gradients") {
  const Variable x = leaf({1});
  Variable y = x * 3.0;
  y.retain_grad();
  y.register_hook([](const Tensor& gradient) {
    return There::full(gradient.shape(), gradient.item<float>() + 1);
  });
  x.register_hook([](const Tensor& gradient) {
    return There::full(gradient.shape(), gradient.item<float>() * 10);
  });
  (y * 2.0).backward();
  CHECK(values(y.grad()) == std::vector<float>{3});
  CHECK(values(x.grad()) == std::vector<float>{90});
  Variable wrong = x * 1.0;
  wrong.register_hook([](const Tensor&) { return There::zeros({2}); });
  CHECK_THROWS_WITH_AS(wrong.backward(),
                       "[backward] a hook must return a gradient of shape [1] and dtype float32, "
                       "got [2]",
                       ShapeError);
  CHECK_THROWS_WITH_AS(x.register_hook(nullptr),
                       "[register_hook] the hook must hold a function, got none",
                       ValueError);
  for (const Variable& silent : {leaf({1}), leaf({1}) * 1.0}) {
    silent.register_hook([](const Tensor&) { return Tensor(); });
    CHECK_THROWS_WITH_AS(silent.backward(),
                         "[backward] a hook must return a gradient of shape [1] and dtype float32, "
                         "got none",
                         ShapeError);
  }
}

TEST_CASE("autograd.engine: a leaf's hook sees what one pass gives, before it is added") {
  const Variable x = leaf({1});
  x.register_hook([](const Tensor& gradient) {
    return There::full(gradient.shape(), 2 * gradient.item<float>());
  });
  (x * 3.0).backward();
  (x * 3.0).backward();
  CHECK(values(x.grad()) == std::vector<float>{12});
}

TEST_CASE(
    "autograd.engine: a leaf's hook that throws, or gives another shape, changes no gradient") {
  for (const bool throws : {true, false}) {
    const Variable x = leaf({1});
    const Variable w = leaf({2});
    (x * w).backward();
    const auto num_calls = std::make_shared<int>(0);
    for (const Variable& leaf : {x, w}) {  // whichever comes second throws
      leaf.register_hook([&, num_calls](const Tensor& gradient) -> Tensor {
        if (++*num_calls == 1) return gradient;
        if (throws) throw ValueError("stop");
        return There::zeros({2});
      });
    }
    CHECK_THROWS_AS((x * w).backward(), Error);
    CHECK(values(w.grad()) == std::vector<float>{1});
    CHECK(values(x.grad()) == std::vector<float>{2});
  }
}

TEST_CASE("autograd.engine: a hook runs once in a pass that reaches its leaf twice") {
  const Variable w = Variable::leaf(There::ones({1, 1}));
  int num_calls = 0;
  w.register_hook([&](const Tensor& gradient) {
    ++num_calls;
    return gradient;
  });
  linear(linear(Variable(There::ones({1, 1})), w), w).backward();
  CHECK(num_calls == 1);
  CHECK(values(w.grad()) == std::vector<float>{2});
}

TEST_CASE("autograd.engine: a graph in use by one pass is refused to another") {
  const Variable x = leaf({1});
  const Variable middle = x * 2.0;
  const Variable y = middle * 3.0;
  middle.register_hook([&](const Tensor& gradient) {
    CHECK_THROWS_WITH_AS(y.backward(),
                         "[backward] a graph can be used by one backward pass at a time, got a "
                         "second one at mul; wait for the first",
                         StateError);
    return gradient;
  });
  y.backward();
  CHECK(values(x.grad()) == std::vector<float>{6});
}

TEST_CASE("autograd.engine: backward of another graph may run inside a hook") {
  const Variable x = leaf({1});
  const Variable other = leaf({5});
  const Variable y = x * 2.0;
  y.register_hook([&](const Tensor& gradient) {
    (other * 7.0).backward();
    return gradient;
  });
  y.backward();
  CHECK(values(other.grad()) == std::vector<float>{7});
}

TEST_CASE("autograd.engine: graphs of two threads share constants") {
  const Variable constant(There::of<float>({2}));
  std::vector<std::thread> threads;
  std::vector<float> results(2);
  for (std::size_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      const Variable x = leaf({static_cast<float>(t + 1)});
      for (int i = 0; i < 1000; ++i) (x * constant).backward();
      results[t] = x.grad().item<float>();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(results == std::vector<float>{2000, 2000});
}

TEST_CASE("autograd.engine: a pass may outlive the caller's variable") {
  const Variable x = leaf({2});
  {
    Engine engine({});
    engine.run(x * x, There::ones({1}));  // the product dies before the engine: ASan watches
  }
  CHECK(values(x.grad()) == std::vector<float>{4});
}

TEST_CASE("autograd.engine: backward works under no_grad for a graph from outside") {
  const Variable x = leaf({1});
  const Variable y = x * 2.0;
  const NoGrad no_grad;
  y.backward();
  CHECK(values(x.grad()) == std::vector<float>{2});
}

TEST_CASE("autograd.engine: plain gradients chain in call order") {
  const Variable w = leaf({0});
  const float big = 16777216.0F;  // 2^24: adding 1 is lost, so the order shows
  (w * Variable(There::of<float>({big}))).backward();
  (w * Variable(There::of<float>({1}))).backward();
  (w * Variable(There::of<float>({-big}))).backward();
  CHECK(values(w.grad()) == std::vector<float>{0});
}
