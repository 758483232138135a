// The steps of step_peer.h, as libtorch's C++ interface spells them.
#include "accrue/bench/step_peer.h"

#include <torch/torch.h>

#include <memory>

namespace accrue::bench {
namespace {

/// One step of `model` by SGD, as a function that owns everything it needs.
std::function<void()> step_of(torch::nn::Sequential model,
                              torch::Tensor inputs,
                              torch::Tensor labels,
                              double lr) {
  const std::int64_t classes = model->forward(inputs).size(-1);
  auto optimizer = std::make_shared<torch::optim::SGD>(model->parameters(), lr);
  return [=]() mutable {
    const torch::Tensor logits = model->forward(inputs).view({-1, classes});
    const torch::Tensor loss = torch::nn::functional::cross_entropy(logits, labels);
    loss.backward();
    optimizer->step();
    optimizer->zero_grad();
  };
}

}  // namespace

std::string start_peer(int num_threads) {
  at::set_num_threads(num_threads);
  return TORCH_VERSION;
}

std::function<void()> peer_token_step() {
  constexpr std::int64_t kSequences = 8;
  torch::Tensor tokens = torch::zeros({kSequences, kSequences, 1});
  torch::Tensor labels = torch::full({kSequences, kSequences}, -100, torch::kInt64);
  for (std::int64_t i = 0; i < kSequences; ++i) {
    for (std::int64_t t = 0; t <= i; ++t) {
      tokens[i][t][0] = static_cast<float>(t + 1);
      labels[i][t] = (t + 1) % 2;
    }
  }
  torch::nn::Sequential model(torch::nn::Linear(torch::nn::LinearOptions(1, 2).bias(false)));
  return step_of(model, tokens, labels.view({-1}), 0.08);
}

std::function<void()> peer_mlp_step(std::int64_t inputs,
                                    std::int64_t hidden,
                                    std::int64_t classes,
                                    std::int64_t batch) {
  torch::nn::Sequential model(
      torch::nn::Linear(inputs, hidden), torch::nn::ReLU(), torch::nn::Linear(hidden, classes));
  return step_of(
      model, torch::rand({batch, inputs}), torch::randint(classes, {batch}, torch::kInt64), 0.01);
}

}  // namespace accrue::bench
