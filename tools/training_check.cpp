#include "accrue/tools/training_check.h"

#include "accrue/accrue.h"
#include "accrue/bench/support/program.h"
#include "accrue/core/bits.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace accrue::tools {
namespace {

constexpr std::int64_t kNumSamples = 60;  // two whole windows and a short one

Tensor normal_tensor(Shape shape, std::uint64_t seed) {
  Tensor tensor = Tensor::empty(shape);
  Generator(seed).normal({tensor.mutable_data<float>(), static_cast<std::size_t>(tensor.numel())});
  return tensor;
}

/// The hash of loss and weights of every step. Each rank starts with weights of its own, which
/// those of the main process replace.
std::uint64_t train(std::int64_t micro_batch_size) {
  train::Accelerator accelerator({.global_batch_size = kGlobalBatchSize, .lanes = kLanes});
  manual_seed(static_cast<std::uint64_t>(accelerator.process_index()));
  nn::Sequential net(std::make_unique<nn::Linear>(7, 16),
                     std::make_unique<nn::ReLU>(),
                     std::make_unique<nn::Linear>(16, 3));
  optim::SGD sgd(net.named_parameters(), {.lr = 0.1, .momentum = 0.9});
  data::DataLoader batches(
      data::TensorDataset({normal_tensor({kNumSamples, 7}, 1), normal_tensor({kNumSamples, 3}, 2)}),
      {.batch_size = micro_batch_size});
  auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
  std::uint64_t hash = kHashSeed;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
      accelerator.clip_grad_norm(model.parameters(), 1);
      optimizer.step();
      optimizer.zero_grad();
      if (!accelerator.sync_gradients()) continue;
      const double loss = accelerator.window_loss();
      hash = hash_bits(std::span(&loss, 1), hash);
      for (const Variable& parameter : model.parameters()) {
        hash = hash_bits(std::span<const float>(parameter.value().to_vector<float>()), hash);
      }
    }
  }
  return hash;
}

}  // namespace

std::vector<std::int64_t> micro_batch_sizes(std::int64_t num_processes) {
  const std::int64_t largest = std::max<std::int64_t>(1, kGlobalBatchSize / num_processes);
  std::vector<std::int64_t> sizes;
  for (const std::int64_t size : {largest, (largest + 1) / 2, std::int64_t{1}}) {
    if (sizes.empty() || sizes.back() != size) sizes.push_back(size);
  }
  return sizes;
}

void train_and_print(std::int64_t num_processes) {
  const train::ProcessState ranks;
  if (ranks.num_processes() != num_processes) {
    throw bench::ProgramEnd{
        bench::kClaimFailed,
        text("the world must have ", num_processes, " processes, got ", ranks.num_processes())};
  }
  for (const std::int64_t size : micro_batch_sizes(num_processes)) {
    const std::string mine = hex16(train(size));
    for (const std::string& other : ranks.gather_object(mine)) {
      if (other == mine) continue;
      throw bench::ProgramEnd{bench::kClaimFailed, "ranks must end with the same weights"};
    }
    if (ranks.is_main_process()) fmt::print("{}\n", mine);
  }
}

}  // namespace accrue::tools
