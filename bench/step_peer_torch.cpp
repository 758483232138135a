// The side of libtorch of step_cases.h, as its C++ interface spells it.
#include "accrue/bench/step_cases.h"

#include <torch/torch.h>

#include <cmath>
#include <memory>

// The BLAS below libtorch has its own threads where it is OpenBLAS.
extern "C" [[gnu::weak]] void openblas_set_num_threads(int count);

namespace accrue::bench {
namespace {

/// Steps of `model` on one batch, as a function that owns everything it needs. `loss_of` maps
/// outputs and labels to a loss.
template <class Model, class Optimizer, class LossOf>
std::function<void()> step_of(
    Model model, Optimizer optimizer, torch::Tensor inputs, torch::Tensor labels, LossOf loss_of) {
  auto owned = std::make_shared<Optimizer>(std::move(optimizer));
  return [=]() mutable {
    loss_of(model->forward(inputs), labels).backward();
    owned->step();
    owned->zero_grad();
  };
}

template <class Model>
torch::optim::SGD sgd(const Model& model, double lr) {
  return torch::optim::SGD(model->parameters(), lr);
}

template <class Model>
torch::optim::AdamW adamw(const Model& model) {
  return torch::optim::AdamW(model->parameters(), 1e-3);
}

torch::Tensor cross_entropy(const torch::Tensor& logits, const torch::Tensor& labels) {
  return torch::nn::functional::cross_entropy(logits.view({-1, logits.size(-1)}), labels.view(-1));
}

/// A block of TransformerBlock's form. Attention is spelled out: version 1.13 has no fused one.
struct BlockImpl : torch::nn::Module {
  BlockImpl(std::int64_t embed_dim, std::int64_t num_heads, std::int64_t context)
      : heads(num_heads),
        in_proj(register_module("in_proj", torch::nn::Linear(embed_dim, 3 * embed_dim))),
        out_proj(register_module("out_proj", torch::nn::Linear(embed_dim, embed_dim))),
        linear1(register_module("linear1", torch::nn::Linear(embed_dim, 4 * embed_dim))),
        linear2(register_module("linear2", torch::nn::Linear(4 * embed_dim, embed_dim))),
        norm1(register_module("norm1", torch::nn::LayerNorm(std::vector{embed_dim}))),
        norm2(register_module("norm2", torch::nn::LayerNorm(std::vector{embed_dim}))),
        future(torch::ones({context, context}, torch::kBool).triu(1)) {}

  torch::Tensor attend(const torch::Tensor& x) {
    const std::int64_t n = x.size(0), t = x.size(1), width = x.size(2) / heads;
    const auto qkv = in_proj(x).view({n, t, 3, heads, width}).permute({2, 0, 3, 1, 4});
    const auto scores = torch::matmul(qkv[0], qkv[1].transpose(-2, -1)) *
                        (1 / std::sqrt(static_cast<double>(width)));
    const auto weights = scores.masked_fill(future, -INFINITY).softmax(-1);
    return out_proj(torch::matmul(weights, qkv[2]).transpose(1, 2).reshape({n, t, -1}));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = x + attend(norm1(x));
    return x + linear2(torch::gelu(linear1(norm2(x))));
  }

  std::int64_t heads;
  torch::nn::Linear in_proj, out_proj, linear1, linear2;
  torch::nn::LayerNorm norm1, norm2;
  torch::Tensor future;
};
TORCH_MODULE(Block);

struct GptImpl : torch::nn::Module {
  explicit GptImpl(const GptStep& step)
      : token(register_module("token", torch::nn::Embedding(step.vocabulary, step.embed_dim))),
        position(register_module("position", torch::nn::Embedding(step.context, step.embed_dim))),
        blocks(register_module("blocks", torch::nn::Sequential())),
        norm(register_module("norm", torch::nn::LayerNorm(std::vector{step.embed_dim}))),
        head(register_module(
            "head",
            torch::nn::Linear(
                torch::nn::LinearOptions(step.embed_dim, step.vocabulary).bias(false)))) {
    for (std::int64_t i = 0; i < step.num_layers; ++i)
      blocks->push_back(Block(step.embed_dim, step.num_heads, step.context));
  }
  torch::Tensor forward(const torch::Tensor& tokens) {
    const auto positions = torch::arange(tokens.size(1));
    return head(norm(blocks->forward(token(tokens) + position(positions))));
  }

  torch::nn::Embedding token, position;
  torch::nn::Sequential blocks;
  torch::nn::LayerNorm norm;
  torch::nn::Linear head;
};
TORCH_MODULE(Gpt);

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
  return step_of(model, sgd(model, 0.02), x, 2 * x, squared_error);
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
  return step_of(model, sgd(model, 0.08), tokens, labels, cross_entropy);
}

std::function<void()> peer_mlp_step(const MlpStep& step) {
  torch::nn::Sequential model(
      torch::nn::Linear(784, step.hidden), torch::nn::ReLU(), torch::nn::Linear(step.hidden, 10));
  const torch::Tensor images = torch::rand({step.batch, 784});
  const torch::Tensor labels = torch::randint(10, {step.batch}, torch::kInt64);
  return step.adamw ? step_of(model, adamw(model), images, labels, cross_entropy)
                    : step_of(model, sgd(model, 0.01), images, labels, cross_entropy);
}

std::function<void()> peer_gpt_step(const GptStep& step) {
  Gpt model(step);
  const auto tokens = [&] {
    return torch::randint(step.vocabulary, {step.sequences, step.context}, torch::kInt64);
  };
  return step_of(model, adamw(model), tokens(), tokens(), cross_entropy);
}

std::function<void()> peer_conv_step(std::int64_t batch) {
  const auto conv = [](std::int64_t in, std::int64_t out) {
    return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1));
  };
  torch::nn::Sequential model(conv(1, 16),
                              torch::nn::ReLU(),
                              torch::nn::MaxPool2d(2),
                              conv(16, 32),
                              torch::nn::ReLU(),
                              torch::nn::MaxPool2d(2),
                              torch::nn::Flatten(),
                              torch::nn::Linear(32 * 7 * 7, 10));
  return step_of(model,
                 sgd(model, 0.01),
                 torch::rand({batch, 1, 28, 28}),
                 torch::randint(10, {batch}, torch::kInt64),
                 cross_entropy);
}

}  // namespace accrue::bench
