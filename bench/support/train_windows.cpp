#include "accrue/bench/support/train_windows.h"

namespace accrue::bench {
namespace {

using reference::Row;

/// Of the parameters that the window gave a gradient.
std::vector<Row> rows_of(const std::vector<Variable>& parameters, Tensor (*what)(const Variable&)) {
  std::vector<Row> rows;
  for (const Variable& parameter : parameters) {
    if (parameter.grad().defined()) rows.push_back(what(parameter).to_vector<float>());
  }
  return rows;
}

}  // namespace

std::vector<reference::Step> train_windows(nn::Layer& net,
                                           optim::Optimizer& optimizer_of_net,
                                           data::DataLoader& batches,
                                           LossFunction loss_of,
                                           const reference::Training& training,
                                           train::AcceleratorOptions options) {
  const std::vector<Variable> parameters = net.parameters();
  options.global_batch_size = training.global_batch_size;
  options.lanes = training.lanes;
  options.mixed_precision = train::MixedPrecision{static_cast<std::uint8_t>(training.half)};
  options.grad_scaler = optim::GradScalerOptions{.init_scale = training.loss_scale};
  train::Accelerator accelerator(options);
  auto [model, optimizer, loader] = accelerator.prepare(net, optimizer_of_net, batches);

  std::vector<reference::Step> steps;
  for (int epoch = 0; epoch < training.epochs; ++epoch) {
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      accelerator.backward(loss_of(model(batch.inputs), batch.labels));
      if (accelerator.sync_gradients()) {
        steps.push_back(
            {.loss = static_cast<float>(accelerator.window_loss()),
             .gradients = rows_of(parameters, [](const Variable& p) { return p.grad(); })});
      }
      accelerator.clip_grad_norm(parameters, training.max_norm);
      optimizer.step();
      if (accelerator.sync_gradients()) {
        steps.back().weights = rows_of(parameters, [](const Variable& p) { return p.value(); });
      }
      optimizer.zero_grad();
    }
  }
  return steps;
}

}  // namespace accrue::bench
