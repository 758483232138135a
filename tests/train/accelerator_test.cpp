// The accelerator: windows, scopes, tails, weight 0, abandoned loaders, errors.
#include "accrue/train/accelerator.h"

#include "accrue/autograd/autograd.h"
#include "accrue/core/bits.h"
#include "accrue/data/tensor_dataset.h"
#include "accrue/nn/linear.h"
#include "accrue/nn/loss.h"
#include "accrue/optim/sgd.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/train/line.h"

#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

using namespace accrue;
using accrue::test::There;
using train::Accelerator;
using train::AcceleratorOptions;
using namespace accrue::tests;

namespace {

/// A variable of the environment, unset at first, which gets its value back.
class Environment {
 public:
  explicit Environment(const char* name) : name_(name) {
    if (const char* const value = std::getenv(name)) before_ = value;
    unsetenv(name);
  }
  ~Environment() { before_ ? set(before_->c_str()) : static_cast<void>(unsetenv(name_)); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  void set(const char* value) const { setenv(name_, value, 1); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("train.accelerator: every split of the documented example gives 40028f5c") {
  int splits = 0;
  for (const auto& [steps, batch_size] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 8}, {2, 4}, {4, 2}, {8, 1}}) {
    for (int lanes : {1, 2, 8, 16}) {
      Accelerator accelerator({.gradient_accumulation_steps = steps, .lanes = lanes});
      Line line;
      auto batches = line_loader(8, batch_size);
      train_epoch(accelerator, line, batches);
      CHECK(bits(line.weight()) == 0x40028f5c);
      CHECK(accelerator.window_loss() == 102.0);
      ++splits;
    }
  }
  CHECK(splits == 16);
}

TEST_CASE("train.accelerator: a short last window is divided by its own weight") {
  // Two windows of 4 and 1 samples from weight 0: w1 = 0.02 * 2 * (1*2 + 2*4 + 3*6 + 4*8) / 4.
  Accelerator accelerator({.gradient_accumulation_steps = 2});
  Line line;
  auto batches = line_loader(5, 2);
  CHECK(train_epoch(accelerator, line, batches) == std::vector<bool>{false, true, true});
  const float w1 = std::fma(0.02F, 30.0F, 0.0F);
  const float gradient = 2 * (5 * w1 - 10) * 5;
  CHECK(bits(line.weight()) == bits(std::fma(-0.02F, gradient, w1)));
}

TEST_CASE("train.accelerator: global_batch_size cuts micro-batches at window ends") {
  Accelerator accelerator({.global_batch_size = 5});
  Line line;
  auto batches = line_loader(8, 2);
  CHECK(train_epoch(accelerator, line, batches) ==
        std::vector<bool>{false, false, true, false, true});
}

TEST_CASE("train.accelerator: gradients are readable at the window's end only") {
  Accelerator accelerator({.gradient_accumulation_steps = 2});
  Line line;
  auto batches = line_loader(4, 2);
  auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, batches);
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
    if (accelerator.sync_gradients()) {
      CHECK(model.weight().grad().item<float>() == -30.0F);
    } else {
      CHECK_THROWS_WITH_AS(model.weight().grad(),
                           "[grad] gradients exist when the window ends, got a window that still "
                           "accumulates; read them where sync_gradients() is true",
                           StateError);
    }
    optimizer.step();
    optimizer.zero_grad();
  }
}

TEST_CASE("train.accelerator: a window of weight 0 makes no step") {
  const Tensor x = Tensor::ones({4, 1});
  const Tensor labels = Tensor::of<std::int64_t>({-100, -100, 0, 1});
  data::DataLoader batches(data::TensorDataset({x, labels}), {.batch_size = 1});
  nn::Linear net(1, 2);
  optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1});
  optim::LambdaLR schedule(sgd, [](std::int64_t t) { return 1.0 / static_cast<double>(t + 1); });
  Accelerator accelerator({.gradient_accumulation_steps = 2});
  auto [model, optimizer, loader, scheduler] = accelerator.prepare(net, sgd, batches, schedule);
  const Tensor before = net.weight().value().clone();
  std::vector<bool> skipped;
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    accelerator.backward(nn::cross_entropy(model(batch.inputs), batch.labels));
    optimizer.step();
    scheduler.step();
    optimizer.zero_grad();
    if (!accelerator.sync_gradients()) continue;
    skipped.push_back(optimizer.step_was_skipped());
    CHECK(equal_bits(net.weight().value(), before) == skipped.back());
    CHECK(std::isnan(accelerator.window_loss()) == skipped.back());
  }
  CHECK(skipped == std::vector<bool>{true, false});
  CHECK(accelerator.num_skipped_windows() == 1);
  CHECK(schedule.last_step() == 1);
}

TEST_CASE("train.accelerator: a loader left by break drops its open window") {
  Accelerator accelerator({.gradient_accumulation_steps = 4});
  Line line;
  auto batches = line_loader(8, 2);
  auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, batches);
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
    break;
  }
  CHECK(!model.weight().grad().defined());
  CHECK(batches.epoch() == 0);
  CHECK(train_epoch(accelerator, line, batches) == std::vector<bool>{false, false, false, true});
  CHECK(bits(line.weight()) == 0x40028f5c);
}

TEST_CASE("train.accelerator: an exception poisons the window until zero_grad") {
  Accelerator accelerator({.gradient_accumulation_steps = 2});
  Line line;
  auto batches = line_loader(8, 2);
  auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, batches);
  int step = 0;
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    const Variable y = model(batch.inputs);
    if (step == 0) y.register_hook([](const Tensor&) -> Tensor { throw ValueError("lost"); });
    const Loss loss = nn::mse(y, batch.labels);
    if (step == 0) {
      CHECK_THROWS_WITH_AS(accelerator.backward(loss), "lost", ValueError);
    } else if (step == 1) {
      CHECK_THROWS_WITH_AS(accelerator.backward(loss),
                           "[backward] a backward pass of this window threw, so its sums are "
                           "incomplete; call optimizer.zero_grad() first",
                           StateError);
      optimizer.zero_grad();
      accelerator.backward(loss);
      CHECK(model.weight().grad().item<float>() == -2 * (3 * 6 + 4 * 8) / 2);
    } else {
      accelerator.backward(loss);
    }
    if (step != 0) {
      optimizer.step();
      optimizer.zero_grad();
    }
    ++step;
  }
  CHECK(step == 4);
}

TEST_CASE("train.accelerator: a nested evaluation loop changes nothing") {
  const auto run = [](bool nested) {
    Accelerator accelerator({.gradient_accumulation_steps = 2});
    Line line;
    auto batches = line_loader(5, 1);
    auto held_out = line_loader(3, 2);
    auto [model, optimizer, loader, evaluation] =
        accelerator.prepare(line.model, line.optimizer, batches, held_out);
    std::string syncs;
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
      syncs += accelerator.sync_gradients() ? 'T' : '.';
      if (nested) {
        const NoGrad no_grad;
        for (const auto& held : evaluation) {
          if (held.size() == 1) break;
        }
      }
      optimizer.step();
      optimizer.zero_grad();
    }
    return std::pair(syncs, bits(line.weight()));
  };
  CHECK(run(true).first == ".T.TT");
  CHECK(run(true) == run(false));
}

TEST_CASE("train.accelerator: several models share one scope") {
  Accelerator accelerator({.gradient_accumulation_steps = 2});
  Line a;
  Line b;
  auto batches = line_loader(8, 4);
  auto [model_a, model_b, sgd_a, sgd_b, loader] =
      accelerator.prepare(a.model, b.model, a.optimizer, b.optimizer, batches);
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model_a, model_b);
    accelerator.backward(nn::mse(model_a(batch.inputs), batch.labels) +
                         nn::mse(model_b(batch.inputs), batch.labels));
    sgd_a.step();
    sgd_b.step();
    sgd_a.zero_grad();
    sgd_b.zero_grad();
  }
  CHECK(bits(a.weight()) == 0x40028f5c);
  CHECK(bits(b.weight()) == 0x40028f5c);
}

TEST_CASE("train.accelerator: wrong orders of calls are named") {
  Accelerator accelerator({.gradient_accumulation_steps = 2});
  Line line;
  auto batches = line_loader(4, 2);
  auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, batches);
  CHECK_THROWS_WITH_AS(static_cast<void>(accelerator.accumulate(model)),
                       "[accumulate] a prepared loader must be iterated, got none; loop over the "
                       "loader that prepare() returned or use invariant = false",
                       StateError);
  for (const auto& batch : loader) {
    const Loss outside = nn::mse(model(batch.inputs), batch.labels);
    CHECK_THROWS_WITH_AS(accelerator.backward(outside),
                         "[backward] a scope must be open, got none; call accumulate(model) first",
                         StateError);
    {
      auto scope = accelerator.accumulate(model);
      CHECK_THROWS_WITH_AS(static_cast<void>(accelerator.accumulate(model)),
                           "[accumulate] scopes must not nest, got a second one; pass all models "
                           "to one accumulate()",
                           StateError);
      auto other_batches = line_loader(2, 2);
      Accelerator other;
      auto other_loader = other.prepare(other_batches);
      const auto nest = [&] {
        for (const auto& inner : other_loader) {
          auto second = other.accumulate(model);
          other.backward(nn::mse(model(inner.inputs), inner.labels));
        }
      };
      CHECK_THROWS_WITH_AS(nest(),
                           "[accumulate] micro-batches must not nest, got a second one on this "
                           "thread; end the other scope first",
                           StateError);
      const Loss loss = nn::mse(model(batch.inputs), batch.labels);
      CHECK_THROWS_WITH_AS(loss.rows().backward(There::ones({2})),
                           "[backward] inside accumulate() gradients must go through "
                           "Accelerator::backward(loss)",
                           StateError);
      CHECK_THROWS_WITH_AS(accelerator.backward(loss.rows()),
                           "[backward] a Loss must be given, which carries row losses and their "
                           "weight, got a Variable; use Loss::from_rows or invariant = false",
                           StateError);
      accelerator.backward(loss);
      CHECK_THROWS_WITH_AS(accelerator.backward(nn::mse(model(batch.inputs), batch.labels)),
                           "[backward] a micro-batch has one backward pass, got a second; add the "
                           "losses first",
                           StateError);
    }
    CHECK_THROWS_WITH_AS(static_cast<void>(accelerator.accumulate(model)),
                         "[accumulate] a micro-batch can be accumulated once, got a second scope "
                         "for it; add the losses in one scope",
                         StateError);
    optimizer.step();
  }
}

TEST_CASE("train.accelerator: a gradient that was not dropped is refused to the next window") {
  Accelerator accelerator;
  Line line;
  auto batches = line_loader(2, 1);
  auto [model, loader] = accelerator.prepare(line.model, batches);
  int step = 0;
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    const Loss loss = nn::mse(model(batch.inputs), batch.labels);
    if (step++ == 0) {
      accelerator.backward(loss);
    } else {
      CHECK_THROWS_WITH_AS(accelerator.backward(loss),
                           "[backward] a finished gradient must be dropped before the next window "
                           "adds to it; call zero_grad() after step()",
                           StateError);
    }
  }
}

TEST_CASE("train.accelerator: clipping acts at window ends only") {
  Accelerator accelerator({.gradient_accumulation_steps = 2});
  Line line;
  auto batches = line_loader(4, 2);
  auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, batches);
  std::vector<double> norms;
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
    norms.push_back(accelerator.clip_grad_norm(model.parameters(), 1.0));
    if (accelerator.sync_gradients()) CHECK(model.weight().grad().item<float>() >= -1.0F);
    optimizer.step();
    optimizer.zero_grad();
  }
  CHECK(norms == std::vector<double>{0.0, 30.0});
}

TEST_CASE("train.accelerator: options outside their domain are refused") {
  const auto message = [](AcceleratorOptions options) {
    try {
      const Accelerator accelerator(std::move(options));
    } catch (const ValueError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(message({.gradient_accumulation_steps = 0}) ==
        "[accelerator] gradient_accumulation_steps must lie in [1, 2^31], got 0");
  CHECK(message({.gradient_accumulation_steps = (std::int64_t{1} << 31) + 1}) ==
        "[accelerator] gradient_accumulation_steps must lie in [1, 2^31], got 2147483649");
  CHECK(message({.global_batch_size = -1}) ==
        "[accelerator] global_batch_size must be >= 0, got -1");
  CHECK(message({.gradient_accumulation_steps = 2,
                 .gradient_accumulation_plugin = train::GradientAccumulationPlugin{3}}) ==
        "[accelerator] steps must be given once, got gradient_accumulation_steps = 2 and a "
        "plugin; use one of them");
  CHECK(message({.gradient_accumulation_plugin = train::GradientAccumulationPlugin{3, false}}) ==
        "[accelerator] windows end with the epoch, got sync_with_dataloader = false; use "
        "Compat::accelerate() to carry them over");
  CHECK(message({.lanes = 3}) ==
        "[window_plan] lanes must be a power of two in [1, 32768], got 3; use 2 or 4");
  CHECK(message({.first_bucket_bytes = 0}) ==
        "[accelerator] bytes of buckets must be positive, got 0");
  CHECK(message({.bucket_cap_bytes = -1}) ==
        "[accelerator] bytes of buckets must be positive, got -1");
  CHECK(message({.grad_scaler = optim::GradScalerOptions{.init_scale = 0}}) != "accepted");
  Accelerator accelerator({.gradient_accumulation_steps = 3, .global_batch_size = 8});
  auto batches = line_loader(8, 2);
  CHECK_THROWS_WITH_AS(
      accelerator.prepare(batches),
      "[prepare] global_batch_size must equal ranks * gradient_accumulation_steps * "
      "batch_size, got 8 and 1 * 3 * 2; give one of the two options",
      ValueError);
}

TEST_CASE("train.accelerator: without invariance any operation is allowed, weights stay real") {
  Accelerator accelerator({.gradient_accumulation_steps = 4, .invariant = false});
  Line line;
  auto batches = line_loader(8, 2);
  train_epoch(accelerator, line, batches);
  CHECK(bits(line.weight()) == 0x40028f5c);
  CHECK(accelerator.window_loss() == 102.0);

  Line other;
  auto [model, optimizer, loader] = accelerator.prepare(other.model, other.optimizer, batches);
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    accelerator.backward(mse_loss(model(batch.inputs), batch.labels));
    optimizer.step();
    optimizer.zero_grad();
  }
  CHECK(bits(other.weight()) == 0x40028f5c);
}

TEST_CASE("train.accelerator: the environment names the device where options do not") {
  const Environment device("ACCELERATE_TORCH_DEVICE");
  CHECK(Accelerator().device() == Device::cpu());
  device.set("cpu");
  CHECK(Accelerator().device() == Device::cpu());
  device.set("cuda:99");
  CHECK_THROWS_AS(Accelerator(), DeviceError);
  CHECK(Accelerator({.device = Device::cpu()}).device() == Device::cpu());
  for (const char* const wrong : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda1"}) {
    device.set(wrong);
    const std::string said =
        "[accelerator] ACCELERATE_TORCH_DEVICE must be cpu, cuda or cuda:N, got '";
    CHECK_THROWS_WITH_AS(
        Accelerator(), (said + wrong + "'; unset it, or give device").c_str(), ValueError);
  }
}
