// Completion: what a window's observer hears of parameters while a backward pass runs.
#include "accrue/autograd/engine.h"
#include "accrue/autograd/leaf.h"
#include "accrue/autograd/ops/binary.h"
#include "accrue/autograd/ops/layer_norm.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

using namespace accrue;
using accrue::test::There;

namespace {

WindowSpan span_of(std::int64_t size) { return {{.nominal_size = size, .count = 1}, size, 0, 1}; }

Variable batch_of(std::initializer_list<float> values) {
  return Variable(There::of<float>(values).with_sample_axis({0, 1}));
}

Variable parameter(float value) { return Variable::leaf(There::of<float>({value})); }

void backward(const Variable& y) { Engine({}).run(y, There::ones(y.shape(), y.dtype())); }

/// The parameters that were complete, in that order, and the sum of each of their uses.
struct Listener final : CompletionObserver {
  std::vector<const Leaf*> leaves;
  std::vector<std::vector<float>> sums;

  void complete(Leaf& leaf) override {
    leaves.push_back(&leaf);
    sums.emplace_back();
    for (const std::vector<TreeNode>& nodes : leaf.close()) {
      sums.back().push_back(nodes.at(0).partial.item<float>());
    }
  }
};

struct Counter final : CompletionObserver {
  int calls = 0;
  std::size_t uses = 0;

  void complete(Leaf& leaf) override {
    ++calls;
    uses += leaf.close().size();
  }
};

const Leaf* leaf_of(const Variable& variable) { return variable.node()->as_leaf(); }

}  // namespace

TEST_CASE("autograd.completion: a parameter is complete once, after the kernels of all its uses") {
  const Variable a = parameter(2), b = parameter(3);
  Window window;
  window.begin(span_of(4));
  Listener listener;
  for (const std::int64_t at : {0, 2}) {
    const MicroBatch scope(window, at, at + 2);
    if (at == 2) window.observe(&listener);  // in the last micro-batch alone
    const Variable h = batch_of({1, 10}) * a;
    const Variable by_b = h * b, by_a = h * a;
    backward(by_b + by_a);
    window.check_uses();
  }
  // Backward goes through by_a, by_b and h.
  CHECK(listener.leaves == std::vector<const Leaf*>{leaf_of(b), leaf_of(a)});
  CHECK(listener.sums == std::vector<std::vector<float>>{{2 * (2 + 20)}, {2 * 5 * 11, 2 * 22}});
}

TEST_CASE(
    "autograd.completion: a parameter with a use that no gradient reaches is never complete") {
  const Variable a = parameter(2), b = parameter(3);
  Window window;
  window.begin(span_of(2));
  Listener listener;
  window.observe(&listener);
  const MicroBatch scope(window, 0, 2);
  const Variable metric = batch_of({1, 1}) * a;
  backward(batch_of({1, 10}) * a + batch_of({1, 1}) * b);
  CHECK(listener.leaves == std::vector<const Leaf*>{leaf_of(b)});
  CHECK(window.leaves().size() == 2);
}

TEST_CASE("autograd.completion: two uses in one operation complete a parameter once") {
  const Variable w = Variable::leaf(There::of<float>({1, 2}));
  Window window;
  window.begin(span_of(1));
  Counter listener;
  window.observe(&listener);
  const MicroBatch scope(window, 0, 1);
  const Variable x(There::of<float>({{1, 3}}).with_sample_axis({0, 1}));
  backward(layer_norm(x, {2}, w, w));
  CHECK(listener.calls == 1);
  CHECK(listener.uses == 2);
}

TEST_CASE("autograd.completion: an observer is forgotten when the window ends") {
  Window window;
  window.begin(span_of(1));
  Listener listener;
  window.observe(&listener);
  window.drop();
  CHECK(window.observer() == nullptr);
}
