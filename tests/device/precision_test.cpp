// Mixed precision on devices: the CPU's bits for every split, steps that all ranks skip.
#include "accrue/accrue.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/train/precision_runs.h"

using namespace accrue;
using namespace accrue::tests;
using train::MixedPrecision;

namespace {

const Device kGpu = Device::cuda(0);

/// All ranks' gradients are as they are, but the third of the bias of rank 1, which is infinite.
void spoil_third(nn::Module& net, dist::ProcessGroup& group, int& calls) {
  if (group.rank() != 1) return;
  net.parameters()[1].register_hook([&calls](const Tensor& gradient) {
    if (++calls != 3) return gradient;
    CHECK(gradient.device().kind == Device::Kind::cuda);
    return Tensor::full(gradient.shape(), HUGE_VAL, gradient.dtype(), gradient.device());
  });
}

}  // namespace

TEST_CASE("device.precision: every split, alone and on two ranks, gives the CPU's bits") {
  for (const auto precision : {MixedPrecision::bf16, MixedPrecision::fp16}) {
    CAPTURE(name_of(precision));
    const Report wanted = train_net({.mixed_precision = precision}, kWindow);
    for (const std::int64_t batch_size : {1, 4, 8}) {
      CAPTURE(batch_size);
      CHECK(train_net({.device = kGpu, .mixed_precision = precision}, batch_size) == wanted);
      if (batch_size == kWindow) continue;
      const auto reports = on_ranks(2, [&](dist::ProcessGroup& group) {
        return train_net({.device = kGpu, .process_group = &group, .mixed_precision = precision},
                         batch_size);
      });
      for (const Report& report : reports) CHECK(report == wanted);
    }
  }
}

TEST_CASE("device.precision: an overflow in one rank's data skips the step that the CPU skips") {
  // Sample 9 lies in the second window, on one rank.
  const Report wanted = train_net({.mixed_precision = MixedPrecision::fp16}, 2, 9);
  CHECK(wanted.skipped[1]);
  const auto reports = on_ranks(2, [](dist::ProcessGroup& group) {
    return train_net(
        {.device = kGpu, .process_group = &group, .mixed_precision = MixedPrecision::fp16}, 2, 9);
  });
  for (const Report& report : reports) CHECK(report == wanted);
}

TEST_CASE("device.precision: an overflow that one rank's hook makes skips the step of all") {
  const auto reports = on_ranks(2, [](dist::ProcessGroup& group) {
    int calls = 0;
    return train_net(
        {.device = kGpu, .process_group = &group, .mixed_precision = MixedPrecision::fp16},
        4,
        -1,
        [&](nn::Module& net) { spoil_third(net, group, calls); });
  });
  CHECK(reports[0] == reports[1]);
  CHECK(reports[0].skipped ==
        std::vector<bool>{false, false, true, false, false, false, false, false});
  CHECK(reports[0].weights[2] == reports[0].weights[1]);
  CHECK(reports[0].scales[2] == 512);
  CHECK(reports[0].rates[2] == reports[0].rates[1]);
}

TEST_CASE("device.precision: Autocast and GradScaler without an Accelerator have the CPU's bits") {
  const auto train = [](Device device) {
    const auto net = network();
    net->to(device);
    optim::SGD sgd(net->named_parameters(), {.lr = 0.1});
    optim::GradScaler scaler({.init_scale = 64});
    std::vector<float> seen;
    for (const float x : {1.0f, 1e30f, 0.3f}) {  // the second overflows
      const Tensor inputs = Tensor::full({2, 5}, x, DType::float32, device);
      const Autocast scope(DType::float16);
      scaler.scale(mse_loss((*net)(inputs), Tensor::zeros({2, 3}).to(device))).backward();
      seen.push_back(scaler.step(sgd));
      scaler.update();
      seen.push_back(static_cast<float>(scaler.scale()));
      sgd.zero_grad();
    }
    for (const Variable& parameter : net->parameters()) {
      const std::vector<float> values = parameter.value().to_vector<float>();
      seen.insert(seen.end(), values.begin(), values.end());
    }
    return seen;
  };
  const std::vector<float> near = train(Device::cpu());
  CHECK(std::vector<float>(near.begin(), near.begin() + 6) ==
        std::vector<float>{1, 64, 0, 32, 1, 32});
  CHECK(train(kGpu) == near);
}

TEST_CASE("device.precision: of gradients in several places the first infinite one is named") {
  Tensor bad = Tensor::ones({3});
  bad[1].fill(HUGE_VAL);
  optim::ParameterList parameters;
  for (const Device device : {Device::cpu(), kGpu, kGpu, Device::cpu()}) {
    Variable leaf = Variable::leaf(Tensor::zeros({3}).to(device));
    leaf.set_grad((parameters.size() < 2 ? Tensor::ones({3}) : bad).to(device));
    parameters.append({leaf});
  }
  CHECK_THROWS_WITH_AS(optim::clip_grad_value(parameters, 1),
                       doctest::Contains("got inf at [1] of parameter 2 [3] (1 such elements)"),
                       StateError);
  CHECK(optim::unscale_gradients(parameters, 2));
  CHECK(parameters[3].grad().to_vector<float>()[0] == 0.5f);
}
