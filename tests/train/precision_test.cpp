// Mixed precision: bits of every split, scaled losses over windows, steps that all ranks skip.
#include "accrue/accrue.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/train/line.h"
#include "accrue/tests/train/precision_runs.h"

#include <cmath>
#include <cstdlib>
#include <tuple>

using namespace accrue;
using namespace accrue::tests;
using accrue::test::there;
using accrue::test::There;
using train::Accelerator;
using train::AcceleratorOptions;
using train::MixedPrecision;

namespace {

/// The environment's variable while it lives.
class Environment {
 public:
  explicit Environment(const char* value) { setenv("ACCELERATE_MIXED_PRECISION", value, 1); }
  ~Environment() { unsetenv("ACCELERATE_MIXED_PRECISION"); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
};

}  // namespace

TEST_CASE("train.precision: every split, dealing and number of ranks gives the same bits") {
  int runs = 0;
  for (const auto precision : {MixedPrecision::bf16, MixedPrecision::fp16}) {
    const AcceleratorOptions options{.mixed_precision = precision};
    const Report wanted = train_net(options, kWindow);
    CHECK(wanted.weights != train_net({}, kWindow).weights);
    for (const std::int64_t batch_size : {1, 2, 3, 4}) {
      CHECK(train_net(options, batch_size) == wanted);
      for (const int size : {2, 3}) {
        const auto reports = on_ranks(size, [&](dist::ProcessGroup& group) {
          return train_net({.process_group = &group, .mixed_precision = precision}, batch_size);
        });
        for (const Report& report : reports) CHECK(report == wanted);
        ++runs;
      }
    }
  }
  MESSAGE(runs, " runs on ranks");
}

TEST_CASE("train.precision: the scale leaves no trace in gradients, norms and weights") {
  // Powers of two change no bit while nothing underflows; so does a scale of one.
  const auto with_scale = [](double scale) {
    return train_net({.mixed_precision = MixedPrecision::fp16,
                      .grad_scaler = optim::GradScalerOptions{.init_scale = scale}},
                     2);
  };
  const Report large = with_scale(4096), small = with_scale(1024);
  CHECK(large.norms[0] > 0.5);  // clipped
  CHECK(large.weights == small.weights);
  CHECK(large.norms == small.norms);
  CHECK(large.scales[0] == 4096);
  // Without a scale float16 gradients lose bits.
  CHECK(with_scale(1.0 / 4096).weights != large.weights);
}

TEST_CASE("train.precision: an overflow in the data of one rank skips the step of all") {
  for (const int size : {1, 2, 3}) {
    CAPTURE(size);
    const auto reports = on_ranks(size, [&](dist::ProcessGroup& group) {
      // Sample 9 lies in the second window, on one rank.
      return train_net({.process_group = &group, .mixed_precision = MixedPrecision::fp16}, 2, 9);
    });
    for (const Report& report : reports) CHECK(report == reports[0]);
    const auto& [weights, skipped, scales, rates, norms] = reports[0];
    CHECK(skipped == std::vector<bool>{false, true, false, false, false, true, false, false});
    CHECK(scales == std::vector<double>{1024, 512, 512, 512, 512, 256, 256, 256});
    CHECK(rates == std::vector<double>{
                       0.1 / 2, 0.1 / 2, 0.1 / 4, 0.1 / 8, 0.1 / 16, 0.1 / 16, 0.1 / 32, 0.1 / 64});
    CHECK(weights[1] == weights[0]);
    CHECK(weights[2] != weights[1]);
    CHECK(norms[1] == 0);
  }
}

TEST_CASE("train.precision: an overflow that one rank's hook makes skips the step of all") {
  const auto reports = on_ranks(3, [](dist::ProcessGroup& group) {
    int calls = 0;
    const auto add_hook = [&](nn::Module& net) {
      if (group.rank() != 1) return;
      net.parameters()[1].register_hook([&](const Tensor& gradient) {
        if (++calls != 3) return gradient;
        return Tensor::full(gradient.shape(), HUGE_VAL, gradient.dtype(), gradient.device());
      });
    };
    return train_net(
        {.process_group = &group, .mixed_precision = MixedPrecision::fp16}, 2, -1, add_hook);
  });
  for (const Report& report : reports) CHECK(report == reports[0]);
  CHECK(reports[0].skipped ==
        std::vector<bool>{false, false, true, false, false, false, false, false});
  CHECK(reports[0].weights[2] == reports[0].weights[1]);
}

TEST_CASE("train.precision: the scale grows after whole windows, however they are split") {
  for (const std::int64_t batch_size : {1, 8}) {
    const Report report =
        train_net({.mixed_precision = MixedPrecision::fp16,
                   .grad_scaler = optim::GradScalerOptions{.init_scale = 64, .growth_interval = 3}},
                  batch_size);
    CHECK(report.scales == std::vector<double>{64, 64, 128, 128, 128, 256, 256, 256});
  }
}

TEST_CASE("train.precision: ranks with different scales or modes are told so") {
  int wrong_scale = 0, wrong_mode = 0;
  dist::run_ranks(2, [&](dist::ProcessGroup& group) {
    const double scale = group.rank() == 0 ? 64 : 128;
    CHECK_THROWS_WITH_AS(
        train_net({.process_group = &group,
                   .mixed_precision = MixedPrecision::fp16,
                   .grad_scaler = optim::GradScalerOptions{.init_scale = scale}},
                  2),
        "[accelerator] all ranks must scale the loss alike, got 64 on rank 0 and 128 on rank 1; "
        "load the same scaler state everywhere",
        MismatchError);
    if (group.rank() == 0) ++wrong_scale;
  });
  dist::run_ranks(2, [&](dist::ProcessGroup& group) {
    const auto mode = group.rank() == 0 ? MixedPrecision::bf16 : MixedPrecision::no;
    CHECK_THROWS_AS(train_net({.process_group = &group, .mixed_precision = mode}, 2),
                    MismatchError);
    if (group.rank() == 0) ++wrong_mode;
  });
  CHECK(wrong_scale + wrong_mode == 2);
}

TEST_CASE("train.precision: a plain loop as upstream's scales means, steps and skips") {
  using Row = std::tuple<std::int64_t, bool, double>;
  for (const auto& [growth, bad, scale] :
       {Row(2000, false, 65536), Row(1, false, 131072), Row(2000, true, 32768)}) {
    nn::Linear net(Variable::leaf(Tensor::full({1, 1}, 1)));
    optim::SGD sgd(net.parameters(), {.lr = 0.25});
    optim::LambdaLR constant(sgd, [](std::int64_t) { return 1.0; });
    Accelerator accelerator(
        {.compat = train::Compat::accelerate(), .mixed_precision = MixedPrecision::fp16});
    if (growth == 1) {
      optim::GradScalerState state = accelerator.scaler()->state();
      state.growth_interval = growth;
      accelerator.scaler()->load_state(state);
    }
    auto [model, optimizer, scheduler] = accelerator.prepare(net, sgd, constant);
    const Variable y = model(There::full({1, 1}, bad ? 1e30 : 0.25));
    accelerator.backward(mse_loss(y, There::zeros({1, 1})));
    // Scaled until a step, clipping or this:
    CHECK((bad || net.weight().grad().item<float>() == 8192));
    accelerator.unscale_gradients();
    CHECK((bad || net.weight().grad().item<float>() == 0.125));
    optimizer.step();
    scheduler.step();
    CHECK(net.weight().item<float>() == (bad ? 1 : 0.96875f));
    CHECK(accelerator.optimizer_step_was_skipped() == bad);
    CHECK(constant.last_step() == (bad ? 0 : 1));
    CHECK(accelerator.scaler()->scale() == scale);
  }
}

TEST_CASE("train.precision: a window of weight 0 tells nothing of the scale") {
  const Tensor labels = Tensor::of<std::int64_t>({-100, -100, 0, 1});
  nn::Linear net(1, 2);
  optim::SGD sgd(net.parameters(), {.lr = 0.1});
  data::DataLoader batches(data::TensorDataset({Tensor::ones({4, 1}), labels}), {.batch_size = 2});
  Accelerator accelerator({.mixed_precision = MixedPrecision::fp16,
                           .grad_scaler = optim::GradScalerOptions{.growth_interval = 9}});
  auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
  std::vector<std::int64_t> trackers;
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    accelerator.backward(nn::cross_entropy(model(batch.inputs), batch.labels));
    optimizer.step();
    optimizer.zero_grad();
    trackers.push_back(accelerator.scaler()->state().growth_tracker);
  }
  CHECK(trackers == std::vector<std::int64_t>{0, 1});
  CHECK(accelerator.num_skipped_windows() == 1);
}

TEST_CASE("train.precision: prepared layers and accumulate() compute under autocast") {
  Line line;
  auto batches = line_loader(4, 2);
  const Variable x(There::full({1, 1}, 1.001));
  there(line.model).weight().mutable_value().fill(1);
  const auto is_rounded = [](const Variable& y) { return y.item<float>() == 1; };
  CHECK_FALSE(is_rounded(line.model(x)));
  {
    Accelerator accelerator({.mixed_precision = MixedPrecision::bf16});
    CHECK(accelerator.scaler() == nullptr);
    auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, batches);
    CHECK(is_rounded(model(x)));
    CHECK_FALSE(is_rounded(matmul(x, There::ones({1, 1}))));
    {
      const auto scope = accelerator.autocast();
      CHECK(is_rounded(matmul(x, There::ones({1, 1}))));
    }
    for ([[maybe_unused]] const auto& batch : loader) {
      CHECK_FALSE(autocast_dtype());
      auto scope = accelerator.accumulate(model);
      CHECK(autocast_dtype() == DType::bfloat16);
      break;
    }
    CHECK_FALSE(autocast_dtype());
  }
  Accelerator accelerator({.mixed_precision = MixedPrecision::no});
  (void)accelerator.prepare(line.model);
  CHECK_FALSE(is_rounded(line.model(x)));
  CHECK_FALSE(accelerator.autocast().has_value());
}

TEST_CASE("train.precision: the environment decides where the options do not") {
  {
    const Environment environment("bf16");
    CHECK(Accelerator().mixed_precision() == MixedPrecision::bf16);
    CHECK(Accelerator({.mixed_precision = MixedPrecision::no}).mixed_precision() ==
          MixedPrecision::no);
  }
  CHECK(Accelerator().mixed_precision() == MixedPrecision::no);
  const Environment environment("fp8");
  CHECK_THROWS_WITH_AS(Accelerator(),
                       "[accelerator] ACCELERATE_MIXED_PRECISION must be no, bf16 or fp16, got "
                       "'fp8'; unset it, or give mixed_precision",
                       ValueError);
  CHECK_THROWS_WITH_AS(train::mixed_precision_of("half"),
                       "[accelerator] mixed_precision must be no, bf16 or fp16, got 'half'",
                       ValueError);
  CHECK(train::mixed_precision_of("fp16") == MixedPrecision::fp16);
  CHECK_THROWS_AS(Accelerator({.mixed_precision = MixedPrecision::fp16,
                               .grad_scaler = optim::GradScalerOptions{.init_scale = 0}}),
                  ValueError);
}
