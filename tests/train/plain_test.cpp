// Losses with invariant = false: windows that nest, break off, fail, or meet older gradients.
#include "accrue/autograd/autograd.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/train/line.h"

#include <utility>

using namespace accrue;
using namespace accrue::tests;
using train::Accelerator;

namespace {

constexpr float kWhole = -102;  // the gradient of the mean over x = 1 ... 8, at weight 0

float gradient(const Line& line) { return line.model.weight().grad().item<float>(); }

const char* kNotDropped =
    "[backward] a finished gradient must be dropped before the next window adds to it; call "
    "zero_grad() after step()";

}  // namespace

TEST_CASE("train.plain: a loop within a window leaves that window's sums alone") {
  for (const auto& [zeroes_first, dealt] :
       {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
    CAPTURE(zeroes_first);
    CAPTURE(dealt);
    Accelerator accelerator({.gradient_accumulation_steps = 4, .invariant = false});
    Line outer, inner;
    auto points = line_loader(8, 2), others = line_loader(4, 2);
    auto [model, optimizer, other_model, other_optimizer] =
        accelerator.prepare(outer.model, outer.optimizer, inner.model, inner.optimizer);
    const auto prepare = [&, dealt = dealt](data::DataLoader& batches) {
      return dealt ? accelerator.prepare_data_loader(batches) : accelerator.prepare(batches);
    };
    const auto loader = prepare(points), other_loader = prepare(others);
    int index = 0;
    for (const auto& batch : loader) {
      {
        auto scope = accelerator.accumulate(model);
        if (zeroes_first) optimizer.zero_grad();
        accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
      }
      if (index == 1) {
        for (const auto& other : other_loader) {
          auto scope = accelerator.accumulate(other_model);
          accelerator.backward(nn::mse(other_model(other.inputs), other.labels));
          other_optimizer.step();
          other_optimizer.zero_grad();
        }
        CHECK(inner.weight() != 0);
      }
      CHECK(accelerator.sync_gradients() == (index == 3));
      if (++index == 4) CHECK(gradient(outer) == kWhole);
      optimizer.step();
      if (!zeroes_first) optimizer.zero_grad();
      CHECK((outer.weight() == 0) == (index < 4));
    }
  }
}

TEST_CASE("train.plain: a window that is left early is dropped") {
  Accelerator accelerator({.gradient_accumulation_steps = 4, .invariant = false});
  Line line;
  auto points = line_loader(8, 2);
  auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, points);
  for (const int limit : {2, 4}) {
    int index = 0;
    for (const auto& batch : loader) {
      if (index++ == limit) break;
      auto scope = accelerator.accumulate(model);
      accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
      if (accelerator.sync_gradients()) CHECK(gradient(line) == kWhole);
    }
  }
}

TEST_CASE("train.plain: gradients of an earlier window are refused, not divided again") {
  Accelerator accelerator({.gradient_accumulation_steps = 2, .invariant = false});
  Line first, second;
  auto points = line_loader(16, 4);
  auto [model, optimizer, other_model, other_optimizer, loader] =
      accelerator.prepare(first.model, first.optimizer, second.model, second.optimizer, points);
  int index = 0;
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model, other_model);
    auto& used = index < 2 ? model : other_model;
    accelerator.backward(nn::mse(used(batch.inputs), batch.labels));
    if (index == 1) CHECK(gradient(first) == kWhole);
    if (index == 3) CHECK(gradient(first) == kWhole);  // by the window of the other model
    ++index;
  }
  CHECK(gradient(second) != 0);
  const auto run = [&] {
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
    }
  };
  CHECK_THROWS_WITH_AS(run(), kNotDropped, StateError);
}

TEST_CASE("train.plain: a Loss and a Variable in one window are refused") {
  Accelerator accelerator({.gradient_accumulation_steps = 2, .invariant = false});
  Line line;
  auto points = line_loader(8, 2);
  auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, points);
  const auto run = [&](bool loss_first) {
    bool takes_loss = loss_first;
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      const Loss loss = nn::mse(model(batch.inputs), batch.labels);
      takes_loss ? accelerator.backward(loss) : accelerator.backward(loss.sum());
      takes_loss = !takes_loss;
    }
  };
  CHECK_THROWS_WITH_AS(run(false), kNotDropped, StateError);
  line.optimizer.zero_grad();
  CHECK_THROWS_WITH_AS(
      run(true),
      "[backward] a plain backward pass must not reach a parameter whose window is open; finish "
      "the window or use no_grad",
      StateError);
}

TEST_CASE("train.plain: a backward pass that throws stops its window until zero_grad") {
  Accelerator accelerator({.gradient_accumulation_steps = 2, .invariant = false});
  Line line;
  auto points = line_loader(16, 4);
  auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, points);
  int index = 0;
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    const Variable y = model(batch.inputs);
    if (++index == 2) {
      y.register_hook([](const Tensor&) -> Tensor { throw ValueError("stop"); });
      CHECK_THROWS_WITH_AS(accelerator.backward(nn::mse(y, batch.labels)), "stop", ValueError);
      CHECK_THROWS_AS(optimizer.step(), StateError);
      optimizer.zero_grad();
      optimizer.step();
      CHECK(line.weight() == 0);
      continue;
    }
    accelerator.backward(nn::mse(y, batch.labels));
    optimizer.step();
    CHECK((line.weight() == 0) == (index < 4));
    optimizer.zero_grad();
  }
}

TEST_CASE("train.plain: fp16 unscales what a window gives, once, also around another window") {
  for (const bool invariant : {true, false}) {
    CAPTURE(invariant);
    // The scale doubles after each window, also within the outer one.
    Accelerator accelerator(
        {.gradient_accumulation_steps = 2,
         .invariant = invariant,
         .mixed_precision = train::MixedPrecision::fp16,
         .grad_scaler = optim::GradScalerOptions{.init_scale = 64, .growth_interval = 1}});
    Line outer, inner;
    auto points = line_loader(8, 4), others = line_loader(4, 2);
    auto [model, loader, other_model, other_loader] =
        accelerator.prepare(outer.model, points, inner.model, others);
    bool is_first = true;
    for (const auto& batch : loader) {
      {
        auto scope = accelerator.accumulate(model);
        accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
      }
      if (!std::exchange(is_first, false)) break;
      for (const auto& other : other_loader) {
        auto scope = accelerator.accumulate(other_model);
        accelerator.backward(nn::mse(other_model(other.inputs), other.labels));
      }
      CHECK(gradient(inner) == -30);
    }
    CHECK(gradient(outer) == kWhole);
    CHECK(gradient(inner) == -30);
    CHECK(accelerator.scaler()->scale() == 64 * 4);
  }
}

TEST_CASE("train.plain: a hook that throws at the window's end stops it until zero_grad") {
  Accelerator accelerator({.gradient_accumulation_steps = 2, .invariant = false});
  Line line;
  auto points = line_loader(16, 4);
  auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, points);
  int num_calls = 0;
  line.model.weight().register_hook([&](const Tensor& gradient) {
    if (++num_calls == 1) throw ValueError("stop");
    return gradient;
  });
  int index = 0;
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    const Loss loss = nn::mse(model(batch.inputs), batch.labels);
    if (++index == 2) {
      CHECK_THROWS_WITH_AS(accelerator.backward(loss), "stop", ValueError);
      CHECK_THROWS_AS(optimizer.step(), StateError);
      optimizer.zero_grad();
      optimizer.step();
      CHECK(accelerator.optimizer_step_was_skipped());  // so no schedule advances
    } else {
      accelerator.backward(loss);
    }
    if (index == 4) CHECK(accelerator.window_loss() == 646);
    optimizer.step();
    CHECK((line.weight() == 0) == (index < 4));
    optimizer.zero_grad();
  }
}

TEST_CASE("train.plain: a window whose last micro-batch is left out is refused") {
  Accelerator accelerator({.gradient_accumulation_steps = 2, .invariant = false});
  Line line;
  auto points = line_loader(8, 2);
  auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, points);
  const auto run = [&] {
    int index = 0;
    for (const auto& batch : loader) {
      if (++index == 2) continue;
      auto scope = accelerator.accumulate(model);
      accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
    }
  };
  CHECK_THROWS_AS(run(), StateError);
}

TEST_CASE("train.plain: a loop over dealt batches that leaves out the last is refused") {
  Accelerator accelerator({.gradient_accumulation_steps = 2, .invariant = false});
  Line line;
  auto points = line_loader(8, 2);
  accelerator.prepare(line.model);
  const auto run = [&, loader = accelerator.prepare_data_loader(points)](int left_out) {
    int index = 0;
    for (const auto& batch : loader) {
      if (++index == left_out) continue;
      auto scope = accelerator.accumulate(line.model);
      accelerator.backward(nn::mse(line.model(batch.inputs), batch.labels));
      line.model.zero_grad();
    }
  };
  CHECK_NOTHROW(run(0));
  CHECK_THROWS_AS(run(4), StateError);
}

TEST_CASE("train.plain: an optimizer that is gone leaves the accelerator usable") {
  Accelerator accelerator({.invariant = false, .mixed_precision = train::MixedPrecision::fp16});
  auto points = line_loader(8, 8);
  {
    Line gone;
    accelerator.prepare(gone.model, gone.optimizer);
  }
  Line line;
  auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, points);
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
    CHECK(gradient(line) == kWhole);
  }
}
