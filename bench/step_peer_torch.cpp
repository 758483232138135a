// The steps of step_peer.h, as libtorch's C++ interface spells them.
#include "accrue/bench/step_peer.h"

#include <torch/torch.h>

#include <memory>

// The BLAS below libtorch has its own threads where it is OpenBLAS.
extern "C" [[gnu::weak]] void openblas_set_num_threads(int count);

namespace accrue::bench {
namespace {

/// One step of `model` by SGD, as a function that owns everything it needs. `loss_of` maps outputs
/// and labels to a loss.
template <class LossOf>
std::function<void()> step_of(torch::nn::Sequential model,
                              torch::Tensor inputs,
                              torch::Tensor labels,
                              double lr,
                              LossOf loss_of) {
  auto optimizer = std::make_shared<torch::optim::SGD>(model->parameters(), lr);
  return [=]() mutable {
    loss_of(model->forward(inputs), labels).backward();
    optimizer->step();
    optimizer->zero_grad();
  };
}

torch::Tensor cross_entropy(const torch::Tensor& logits, const torch::Tensor& labels) {
  return torch::nn::functional::cross_entropy(logits.view({-1, logits.size(-1)}), labels);
}

}  // namespace

std::string start_peer(int num_threads) {
  at::set_num_threads(num_threads);
  if (openblas_set_num_threads) openblas_set_num_threads(num_threads);
  return TORCH_VERSION;
}

std::function<void()> peer_line_step() {
  torch::nn::Sequential model(torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
  const auto squared_error = [](const torch::Tensor& y, const torch::Tensor& labels) {
    return torch::nn::functional::mse_loss(y, labels);
  };
  const torch::Tensor x = torch::tensor({{1.0f}, {2.0f}});
  return step_of(model, x, 2 * x, 0.02, squared_error);
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
  return step_of(model, tokens, labels.view({-1}), 0.08, cross_entropy);
}

std::function<void()> peer_mlp_step(std::int64_t inputs,
                                    std::int64_t hidden,
                                    std::int64_t classes,
                                    std::int64_t batch) {
  torch::nn::Sequential model(
      torch::nn::Linear(inputs, hidden), torch::nn::ReLU(), torch::nn::Linear(hidden, classes));
  const torch::Tensor labels = torch::randint(classes, {batch}, torch::kInt64);
  return step_of(model, torch::rand({batch, inputs}), labels, 0.01, cross_entropy);
}

}  // namespace accrue::bench
