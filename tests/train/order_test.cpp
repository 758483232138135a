// Forward, backward and step in the wrong order or scope.
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/train/line.h"

using namespace accrue;
using namespace accrue::tests;
using train::Accelerator;

TEST_CASE("train.order: forward, backward and step keep their order and their scope") {
  Accelerator accelerator;
  Line line;
  auto batches = line_loader(3, 1);
  auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, batches);
  Loss earlier;
  int step = 0;
  for (const auto& batch : loader) {
    const Loss outside = nn::mse(model(batch.inputs), batch.labels);
    auto scope = accelerator.accumulate(model);
    if (step == 0) {
      CHECK_THROWS_WITH_AS(accelerator.backward(outside),
                           "[backward] the forward pass must lie in the accumulate() scope of its "
                           "backward pass, got one outside any scope; call the model after "
                           "accumulate()",
                           StateError);
      optimizer.zero_grad();
      earlier = nn::mse(model(batch.inputs), batch.labels);
    } else if (step == 1) {
      CHECK_THROWS_WITH_AS(accelerator.backward(earlier),
                           "[backward] the forward pass must lie in the accumulate() scope of its "
                           "backward pass, got one of another micro-batch; call the model after "
                           "accumulate()",
                           StateError);
      optimizer.zero_grad();
    } else {
      optimizer.step();
      CHECK_THROWS_WITH_AS(
          accelerator.backward(nn::mse(model(batch.inputs), batch.labels)),
          "[backward] backward must come once and before step() and clipping, got a "
          "window that has ended; add the losses or reorder the loop",
          StateError);
    }
    ++step;
  }
  CHECK(step == 3);
  CHECK(line.weight() == 0);
}

TEST_CASE("train.order: a parameter of two optimizers is divided once") {
  Accelerator accelerator({.invariant = false});
  Line line;
  optim::SGD other(line.model.parameters(), {.lr = 0});
  auto batches = line_loader(8, 8);
  auto [model, optimizer, second, loader] =
      accelerator.prepare(line.model, line.optimizer, other, batches);
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
    optimizer.step();
  }
  CHECK(bits(line.weight()) == 0x40028f5c);
}
