// Our side of step_cases.h, through the Accelerator.
#include "accrue/accrue.h"
#include "accrue/bench/step_cases.h"
#include "accrue/examples/gpt.h"
#include "accrue/kernels/cpu/parallel.h"

#include <chrono>

namespace accrue::bench {
namespace {

/// Steps on one batch, a window each, with the default lanes. The clock runs from accumulate() to
/// the end of its scope: the peer loads no data either.
class Steps {
 public:
  using Clock = std::chrono::steady_clock;
  using LossOf = Loss (*)(const Variable& outputs, const Tensor& labels);
  using Optimizer = std::unique_ptr<optim::Optimizer>;

  Steps(std::unique_ptr<nn::Layer> net,
        const std::vector<Tensor>& batch,
        LossOf loss_of,
        Optimizer (*optimizer_of)(const nn::Layer& net))
      : net_(std::move(net)),
        loss_of_(loss_of),
        optimizer_(optimizer_of(*net_)),
        batches_(data::TensorDataset(batch), {.batch_size = batch[0].size(0)}) {}

  /// Seconds per step, measured for at least 20 ms.
  double turn() {
    auto [model, optimizer, loader] = accelerator_.prepare(*net_, *optimizer_, batches_);
    double seconds = 0;
    int steps = 0;
    for (; seconds < 0.02; ++steps) {
      for (const auto& batch : loader) {
        const Clock::time_point start = Clock::now();
        {
          auto scope = accelerator_.accumulate(model);
          accelerator_.backward(loss_of_(model(batch.inputs), batch.labels));
          optimizer.step();
          optimizer.zero_grad();
        }
        seconds += std::chrono::duration<double>(Clock::now() - start).count();
      }
    }
    return seconds / steps;
  }

 private:
  train::Accelerator accelerator_;
  std::unique_ptr<nn::Layer> net_;
  LossOf loss_of_;
  Optimizer optimizer_;
  data::DataLoader batches_;
};

template <class... Args>
Turn turn_of(Args&&... args) {
  auto steps = std::make_shared<Steps>(std::forward<Args>(args)...);
  return rested([steps] { return steps->turn(); }, kernels::num_threads());
}

Loss cross_entropy(const Variable& logits, const Tensor& labels) {
  return nn::cross_entropy(logits, labels);
}

template <int kPerMille>
Steps::Optimizer sgd(const nn::Layer& net) {
  return std::make_unique<optim::SGD>(net.parameters(), optim::SgdOptions{.lr = kPerMille * 1e-3});
}

Steps::Optimizer adamw(const nn::Layer& net) {
  return std::make_unique<optim::AdamW>(net.parameters(), optim::AdamWOptions{.lr = 1e-3});
}

Tensor uniform(const Shape& shape) {
  Tensor result = Tensor::empty(shape);
  Generator(1).uniform({result.mutable_data<float>(), static_cast<std::size_t>(result.numel())});
  return result;
}

Tensor classes(const Shape& shape, std::int64_t count) {
  Tensor result = Tensor::empty(shape, DType::int64);
  Generator(2).randint(
      {result.mutable_data<std::int64_t>(), static_cast<std::size_t>(result.numel())}, 0, count);
  return result;
}

}  // namespace

Turn our_line_step() {
  const auto squared_error = [](const Variable& outputs, const Tensor& labels) {
    return nn::mse(outputs, labels);
  };
  return turn_of(std::make_unique<nn::Linear>(1, 1, false),
                 std::vector{Tensor::of<float>({{1}, {2}}), Tensor::of<float>({{2}, {4}})},
                 squared_error,
                 sgd<20>);
}

Turn our_token_step() {
  constexpr std::int64_t kSequences = 8;
  Tensor tokens = Tensor::zeros({kSequences, kSequences, 1});
  Tensor labels = Tensor::full({kSequences, kSequences}, -100, DType::int64);
  for (std::int64_t i = 0; i < kSequences; ++i) {
    for (std::int64_t t = 0; t <= i; ++t) {
      tokens[i][t].fill(static_cast<double>(t + 1));
      labels[i][t].fill(static_cast<double>((t + 1) % 2));
    }
  }
  return turn_of(std::make_unique<nn::Linear>(1, 2, false),
                 std::vector{tokens, labels},
                 cross_entropy,
                 sgd<80>);
}

Turn our_mlp_step(const MlpStep& step) {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Linear>(784, step.hidden);
  net->add<nn::ReLU>();
  net->add<nn::Linear>(step.hidden, 10);
  return turn_of(std::move(net),
                 std::vector{uniform({step.batch, 784}), classes({step.batch}, 10)},
                 cross_entropy,
                 step.adamw ? adamw : sgd<10>);
}

Turn our_gpt_step(const GptStep& step) {
  const Shape shape{step.sequences, step.context};
  return turn_of(std::make_unique<examples::Gpt>(examples::GptOptions{.vocabulary = step.vocabulary,
                                                                      .context = step.context,
                                                                      .embed_dim = step.embed_dim,
                                                                      .num_layers = step.num_layers,
                                                                      .num_heads = step.num_heads}),
                 std::vector{classes(shape, step.vocabulary), classes(shape, step.vocabulary)},
                 cross_entropy,
                 adamw);
}

Turn our_conv_step(std::int64_t batch) {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Conv2d>(1, 16, 3, Conv2dOptions{.padding = 1});
  net->add<nn::ReLU>();
  net->add<nn::MaxPool2d>(2);
  net->add<nn::Conv2d>(16, 32, 3, Conv2dOptions{.padding = 1});
  net->add<nn::ReLU>();
  net->add<nn::MaxPool2d>(2);
  net->add<nn::Flatten>();
  net->add<nn::Linear>(32 * 7 * 7, 10);
  return turn_of(std::move(net),
                 std::vector{uniform({batch, 1, 28, 28}), classes({batch}, 10)},
                 cross_entropy,
                 sgd<10>);
}

}  // namespace accrue::bench
