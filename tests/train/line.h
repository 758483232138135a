// A model w * x on the points of y = 2 x: the documentation's example, as trainer tests use it.
#pragma once

#include "accrue/core/bits.h"
#include "accrue/data/tensor_dataset.h"
#include "accrue/nn/linear.h"
#include "accrue/nn/loss.h"
#include "accrue/optim/sgd.h"
#include "accrue/train/accelerator.h"

#include <vector>

namespace accrue::tests {

/// x = 1 ... count, y = 2 x, in batches of `batch_size`.
inline data::DataLoader line_loader(std::int64_t count, std::int64_t batch_size) {
  std::vector<float> x;
  std::vector<float> y;
  for (std::int64_t i = 1; i <= count; ++i) {
    x.push_back(static_cast<float>(i));
    y.push_back(2 * static_cast<float>(i));
  }
  return data::DataLoader(
      data::TensorDataset({Tensor::from(x, {count, 1}), Tensor::from(y, {count, 1})}),
      {.batch_size = batch_size});
}

/// A model w * x with weight 0 and its optimizer.
struct Line {
  nn::Linear model{Variable::leaf(Tensor::zeros({1, 1}))};
  optim::SGD optimizer{model.parameters(), {.lr = 0.02}};

  float weight() const { return model.weight().item<float>(); }
};

inline std::uint32_t bits(float value) { return bits_of(value); }

/// One epoch; returns sync_gradients() of each micro-batch.
inline std::vector<bool> train_epoch(train::Accelerator& accelerator,
                                     Line& line,
                                     data::DataLoader& batches) {
  auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, batches);
  std::vector<bool> syncs;
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
    syncs.push_back(accelerator.sync_gradients());
    optimizer.step();
    optimizer.zero_grad();
  }
  return syncs;
}

}  // namespace accrue::tests
