// The fused linear layer and cross-entropy on a device: the CPU's bits, in chunks and windows.
#include "accrue/autograd/ops/linear_cross_entropy.h"

#include "accrue/accrue.h"
#include "accrue/core/bits.h"
#include "accrue/tests/support/doctest.h"

#include <vector>

using namespace accrue;

namespace {

constexpr std::int64_t kRows = 3, kInputs = 5, kClasses = 13;  // rows of a sample

struct Net : nn::Module {
  nn::Linear body{kInputs, 7}, head{7, kClasses};
  Net() {
    register_module("body", body);
    register_module("head", head);
  }
  Variable operator()(const Variable& x) { return flatten(relu(body(x)), 0, -2); }
};

data::TensorDataset samples(std::int64_t count) {
  Tensor x = Tensor::empty({count, kRows, kInputs});
  Tensor y = Tensor::empty({count, kRows}, DType::int64);
  Generator(3).normal(std::span(x.mutable_data<float>(), static_cast<std::size_t>(x.numel())));
  for (std::int64_t i = 0; i < y.numel(); ++i)
    y.mutable_data<std::int64_t>()[i] = i % 5 == 3 ? -100 : i % kClasses;
  return data::TensorDataset({x, y});
}

/// Hash of losses and weights of one epoch of windows of 8 samples.
std::uint64_t train_on(Device device, std::int64_t steps, std::int64_t chunk_rows) {
  manual_seed(0);
  Net net;
  optim::SGD sgd(net.named_parameters(), {.lr = 0.1, .momentum = 0.9});
  data::DataLoader batches(samples(22), {.batch_size = 8 / steps});
  train::Accelerator accelerator({.gradient_accumulation_steps = steps, .device = device});
  auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
  std::uint64_t hash = kHashSeed;
  const auto add = [&](const auto& values) { hash = hash_bits(std::span(values), hash); };
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    const Tensor labels = batch.labels.flatten();
    const Variable losses = linear_cross_entropy_rows(
        model(batch.inputs), net.head.weight(), net.head.bias(), labels, {}, chunk_rows);
    accelerator.backward(Loss::from_rows(losses, cross_entropy_weight(labels, {})));
    optimizer.step();
    if (accelerator.sync_gradients()) {
      add(std::vector<double>{accelerator.window_loss()});
      for (const Variable& parameter : model.parameters())
        add(parameter.value().to_vector<float>());
    }
    optimizer.zero_grad();
  }
  return hash;
}

}  // namespace

TEST_CASE("device.linear_cross_entropy: chunks and splits of a window give the CPU's bits") {
  const std::uint64_t expected = train_on(Device::cpu(), 1, 0);
  for (const std::int64_t steps : {1, 2, 8}) {
    for (const std::int64_t chunk_rows : {0, 1, 5}) {
      CAPTURE(steps);
      CAPTURE(chunk_rows);
      CHECK(train_on(Device::cuda(0), steps, chunk_rows) == expected);
    }
  }
}

TEST_CASE("device.linear_cross_entropy: a language model's loss has the CPU's bits") {
  const auto results = [](Device device) {
    Tensor hidden = Tensor::empty({2, 4, kInputs}), weight = Tensor::empty({kClasses, kInputs});
    Generator generator(5);
    for (Tensor* tensor : {&hidden, &weight}) {
      const auto count = static_cast<std::size_t>(tensor->numel());
      generator.normal(std::span(tensor->mutable_data<float>(), count));
    }
    const Variable x = Variable::leaf(hidden.to(device)), w = Variable::leaf(weight.to(device));
    const Tensor tokens = Tensor::arange(8, DType::int64).view({2, 4}).to(device);
    const Loss loss = nn::causal_lm_loss(x, w, tokens);
    loss.sum().backward();
    return std::vector<Tensor>{loss.sum().value(), x.grad(), w.grad()};
  };
  const std::vector<Tensor> near = results(Device::cpu()), far = results(Device::cuda(0));
  for (std::size_t i = 0; i < near.size(); ++i) CHECK(equal_bits(far[i], near[i]));
}
