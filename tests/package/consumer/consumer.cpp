// An outside program that knows only the installed package: it trains the example of README.md in
// two splits of the same global batch and compares the bits.
#include "accrue/accrue.h"

#include <cstdio>

using namespace accrue;

namespace {

data::TensorDataset random_digits() {
  Generator generator;
  generator.manual_seed(1);
  std::vector<float> images(64 * 784);
  std::vector<std::int64_t> labels(64);
  generator.uniform(std::span(images), 0, 1);
  generator.randint(std::span(labels), 0, 10);
  return data::TensorDataset({Tensor::from(images, {64, 784}), Tensor::from(labels, {64})});
}

Tensor train_weights(std::int64_t steps, std::int64_t batch_size) {
  manual_seed(0);
  nn::Sequential net(std::make_unique<nn::Linear>(784, 256),
                     std::make_unique<nn::ReLU>(),
                     std::make_unique<nn::Linear>(256, 10));
  optim::SGD sgd(net.named_parameters(), {.lr = 0.1, .momentum = 0.9});
  data::DataLoader batches(random_digits(), {.batch_size = batch_size, .shuffle = true});

  train::Accelerator accelerator({.gradient_accumulation_steps = steps});
  auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    accelerator.backward(nn::cross_entropy(model(batch.inputs), batch.labels));
    accelerator.clip_grad_norm(model.parameters(), 1.0);
    optimizer.step();
    optimizer.zero_grad();
  }
  return net.parameters().front().value();
}

}  // namespace

int main() {
  // README.md names both, and one include offers them.
  if ((cuda_device_count() == 0) == why_no_cuda().empty()) return 1;
  const bool same = equal_bits(train_weights(4, 8), train_weights(1, 32));
  std::puts(same ? "4 x 8 and 1 x 32: the same bits" : "4 x 8 and 1 x 32: other bits");
  return same ? 0 : 1;
}
