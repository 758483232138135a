// Loops as users write them: zero_grad first, micro-batches left out, metrics, other passes.
#include "accrue/autograd/autograd.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/train/line.h"

#include <cmath>

using namespace accrue;
using namespace accrue::tests;
using train::Accelerator;
using train::AcceleratorOptions;

namespace {

const char* kLeftOpen =
    "[loader] the last micro-batch of a window must end it, got window 0 left open, whose "
    "gradients would be lost; enter accumulate() for every batch and call step() in it, also "
    "where backward() is left out";

/// The weight after one epoch on 8 points with `body` as the loop's body.
template <class Body>
float weight_after(AcceleratorOptions options, std::int64_t batch_size, const Body& body) {
  Accelerator accelerator(options);
  Line line;
  auto batches = line_loader(8, batch_size);
  auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, batches);
  int index = 0;
  for (const auto& batch : loader) body(index++, accelerator, model, optimizer, batch);
  return line.weight();
}

}  // namespace

TEST_CASE("train.loops: zero_grad before backward keeps the window, in every split and mode") {
  for (const bool invariant : {true, false}) {
    for (const std::int64_t steps : {1, 2, 4, 8}) {
      CAPTURE(steps);
      Accelerator accelerator({.gradient_accumulation_steps = steps, .invariant = invariant});
      Line first, last;
      for (Line* line : {&first, &last}) {
        auto batches = line_loader(16, 8 / steps);
        auto [model, optimizer, loader] =
            accelerator.prepare(line->model, line->optimizer, batches);
        for (const auto& batch : loader) {
          auto scope = accelerator.accumulate(model);
          if (line == &first) optimizer.zero_grad();
          accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
          optimizer.step();
          if (line == &last) optimizer.zero_grad();
        }
      }
      CHECK(first.weight() != 0);
      CHECK(bits(first.weight()) == bits(last.weight()));
    }
  }
}

TEST_CASE("train.loops: a window whose last micro-batch is left out is refused, not lost") {
  const auto run = [](std::int64_t batch_size, bool enters) {
    return weight_after(
        {.global_batch_size = 4},
        batch_size,
        [&](int index, auto& accelerator, auto& model, auto& optimizer, auto& batch) {
          if (!enters && index % 2 == 1) return;
          auto scope = accelerator.accumulate(model);
          if (index % 2 == 1) return;
          accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
          optimizer.step();
          optimizer.zero_grad();
        });
  };
  for (const bool enters : {true, false}) {
    CHECK_THROWS_WITH_AS(run(2, enters), kLeftOpen, StateError);
    CHECK_THROWS_WITH_AS(run(3, enters), kLeftOpen, StateError);
  }
}

TEST_CASE("train.loops: an epoch does not end with an open window") {
  Accelerator accelerator({.global_batch_size = 8});
  Line line;
  auto batches = line_loader(8, 4);
  auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, batches);
  auto it = loader.begin();
  {
    auto scope = accelerator.accumulate(model);
    accelerator.backward(nn::mse(model(it->inputs), it->labels));
  }
  ++it;
  CHECK_THROWS_WITH_AS(++it, kLeftOpen, StateError);
  CHECK(batches.epoch() == 0);
}

TEST_CASE("train.loops: step() without backward() ends the window with what there is") {
  for (const bool invariant : {true, false}) {
    const float weight =
        weight_after({.gradient_accumulation_steps = 2, .invariant = invariant},
                     4,
                     [](int index, auto& accelerator, auto& model, auto& optimizer, auto& batch) {
                       auto scope = accelerator.accumulate(model);
                       if (index == 0)
                         accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
                       optimizer.step();
                       optimizer.zero_grad();
                       CHECK(accelerator.sync_gradients() == (index == 1));
                       if (index == 1) CHECK(!model.weight().grad().defined());
                     });
    CHECK(bits(weight) == bits(0.02F * 30));
  }
}

TEST_CASE("train.loops: metrics over samples leave the weights as they are") {
  for (const std::int64_t batch_size : {8, 4, 2, 1}) {
    double error = 0;
    const float weight = weight_after(
        {.global_batch_size = 8},
        batch_size,
        [&](int, auto& accelerator, auto& model, auto& optimizer, auto& batch) {
          auto scope = accelerator.accumulate(model);
          const Variable y = model(batch.inputs);
          accelerator.backward(nn::mse(y, batch.labels));
          error += sum(Variable(ne(y, batch.labels).to(DType::float32))).template item<float>();
          const NoGrad no_grad;
          CHECK(mean(y).template item<float>() == 0);
          CHECK(mean(model(batch.inputs)).template item<float>() == 0);
          optimizer.step();
          optimizer.zero_grad();
        });
    CHECK(error == 8);
    CHECK(bits(weight) == 0x40028f5c);
  }
}

TEST_CASE("train.loops: forward passes without backward keep the bits or are refused") {
  // Once without, then with an extra recorded forward pass before or after the other.
  const auto run = [](std::int64_t batch_size, const auto& extra) {
    return weight_after(
        {.global_batch_size = 8},
        batch_size,
        [&](int index, auto& accelerator, auto& model, auto& optimizer, auto& batch) {
          auto scope = accelerator.accumulate(model);
          if (extra(index) == 'b') static_cast<void>(model(batch.inputs));
          const Loss loss = nn::mse(model(batch.inputs), batch.labels);
          if (extra(index) == 'a') static_cast<void>(model(batch.inputs));
          accelerator.backward(loss);
          optimizer.step();
          optimizer.zero_grad();
        });
  };
  for (const std::int64_t batch_size : {8, 4, 2, 1}) {
    CHECK(bits(run(batch_size, [](int) { return 'b'; })) == 0x40028f5c);
    CHECK(bits(run(batch_size, [](int) { return 'a'; })) == 0x40028f5c);
    CHECK(bits(run(batch_size, [](int index) { return index % 2 ? 'a' : '.'; })) == 0x40028f5c);
    if (batch_size == 8) continue;
    for (const char other : {'a', '.'}) {
      CHECK_THROWS_WITH_AS(
          run(batch_size, [=](int index) { return index % 2 ? 'b' : other; }),
          "[backward] a parameter must have the same uses in every micro-batch of a window, got a "
          "recorded forward pass without gradient before another use in some of them; run extra "
          "forward passes under NoGrad",
          StateError);
    }
  }
}

TEST_CASE("train.loops: micro-batches may use a parameter a different number of times") {
  // As recurrent layers do over sequences of unequal length: later uses are missing, none between.
  const auto run = [](std::int64_t batch_size) {
    return weight_after({.global_batch_size = 8},
                        batch_size,
                        [&](int, auto& accelerator, auto& model, auto& optimizer, auto& batch) {
                          auto scope = accelerator.accumulate(model);
                          Variable y = model(batch.inputs);
                          // Samples 1 to 4 are zero in the second use; micro-batches of nothing
                          // else leave it out.
                          const Tensor late = gt(batch.inputs, 4.0).to(DType::float32);
                          if (batch.inputs.template to_vector<float>().back() > 4)
                            y = y + model(batch.inputs) * late;
                          accelerator.backward(nn::mse(y, batch.labels));
                          optimizer.step();
                          optimizer.zero_grad();
                        });
  };
  CHECK(run(8) != 0);
  for (const std::int64_t batch_size : {4, 2, 1}) CHECK(bits(run(batch_size)) == bits(run(8)));
}

TEST_CASE("train.loops: the window's loss is as exact as its dtype, and NaN has no sign") {
  for (const bool invariant : {true, false}) {
    data::DataLoader batches(data::TensorDataset({Tensor::of<double>({{1.0}, {1.0}, {0.1}}),
                                                  Tensor::of<double>({{0.0}, {0.0}, {0.0}})}),
                             {.batch_size = 1});
    nn::Linear net(Variable::leaf(Tensor::ones({1, 1}, DType::float64)));
    Accelerator accelerator({.gradient_accumulation_steps = 3, .invariant = invariant});
    auto [model, loader] = accelerator.prepare(net, batches);
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
    }
    CHECK(accelerator.window_loss() == (2 + 0.1 * 0.1) / 3);
  }
  for (const DType dtype : {DType::float32, DType::float64}) {
    const double loss = Loss::from_rows(Tensor::zeros({2}, dtype), 0).mean();
    CHECK(std::isnan(loss));
    CHECK(!std::signbit(loss));
  }
}

TEST_CASE("train.loops: a parameter written in mid-window is refused by name, else by nobody") {
  const auto run = [](std::int64_t batch_size, int at, bool invariant) {
    return weight_after(
        {.global_batch_size = 8, .invariant = invariant},
        batch_size,
        [&](int index, auto& accelerator, auto& model, auto& optimizer, auto& batch) {
          if (index == at) model.weight().mutable_value().fill(1);
          auto scope = accelerator.accumulate(model);
          accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
          optimizer.step();
          optimizer.zero_grad();
        });
  };
  for (const std::int64_t batch_size : {4, 2, 1}) {
    CHECK(run(batch_size, 0, true) == run(8, 0, true));
    CHECK_NOTHROW(run(batch_size, 1, false));
    CHECK_THROWS_WITH_AS(run(batch_size, 1, true),
                         "[backward] a parameter must keep its values through a window, got weight "
                         "written after a micro-batch that used it; write where the window has "
                         "ended",
                         StateError);
  }
  const auto refused = [](int index, auto& accelerator, auto& model, auto& optimizer, auto& batch) {
    if (index == 1) model.weight().mutable_value().fill(1);
    auto scope = accelerator.accumulate(model);
    const Loss loss = nn::mse(model(batch.inputs), batch.labels);
    if (index == 0) accelerator.backward(loss);
    if (index > 0) CHECK_THROWS_AS(accelerator.backward(loss), StateError);
    optimizer.step();  // not with the sums of the first micro-batch alone
  };
  CHECK_THROWS_WITH_AS(weight_after({.global_batch_size = 8}, 2, refused),
                       "[backward] a backward pass of this window threw, so its sums are "
                       "incomplete; call optimizer.zero_grad() first",
                       StateError);
}

TEST_CASE("train.loops: a hook that writes to the gradient of a loss changes its pass alone") {
  const float weight =
      weight_after({.global_batch_size = 4},
                   1,
                   [](int index, auto& accelerator, auto& model, auto& optimizer, auto& batch) {
                     auto scope = accelerator.accumulate(model);
                     const Loss loss = nn::mse(model(batch.inputs), batch.labels);
                     if (index == 1) {
                       loss.rows().register_hook([](Tensor gradient) {
                         gradient.fill(3);
                         return gradient;
                       });
                     }
                     if (index < 4) accelerator.backward(loss);
                     optimizer.step();
                     optimizer.zero_grad();
                   });
  CHECK(weight == 0.02F * (1 + 3 * 4 + 9 + 16));
}
