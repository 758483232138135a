// A small network trained in mixed precision, and what each rank saw after each window.
#pragma once

#include "accrue/accrue.h"
#include "accrue/dist/dist.h"

#include <cmath>
#include <functional>
#include <memory>
#include <vector>

namespace accrue::tests {

inline constexpr std::int64_t kSamples = 26, kWindow = 8;  // the last window is short

inline data::TensorDataset points(std::int64_t bad_sample = -1) {
  Tensor x = Tensor::empty({kSamples, 5}), y = Tensor::empty({kSamples, 3});
  for (Tensor* tensor : {&x, &y}) {
    Generator(5).normal({tensor->mutable_data<float>(), static_cast<std::size_t>(tensor->numel())});
  }
  if (bad_sample >= 0) x[bad_sample].fill(1e30);  // no float16
  return data::TensorDataset({x, y});
}

inline std::unique_ptr<nn::Sequential> network() {
  Generator generator(3);
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Linear>(5, 16, true, generator);
  net->add<nn::GELU>();
  net->add<nn::Linear>(16, 3, true, generator);
  return net;
}

/// What a rank saw after each window.
struct Report {
  std::vector<std::vector<float>> weights;
  std::vector<bool> skipped;
  std::vector<double> scales, rates, norms;

  bool operator==(const Report&) const = default;
};

/// Two epochs with clipping and a schedule. `prepare` sees the network first.
inline Report train_net(
    train::AcceleratorOptions options,
    std::int64_t batch_size,
    std::int64_t bad_sample = -1,
    const std::function<void(nn::Module&)>& prepare = [](nn::Module&) {}) {
  const auto net = network();
  optim::SGD sgd(net->named_parameters(), {.lr = 0.1, .momentum = 0.9});
  optim::LambdaLR decay(sgd, [](std::int64_t t) { return std::pow(0.5, static_cast<double>(t)); });
  data::DataLoader batches(points(bad_sample), {.batch_size = batch_size});
  if (options.invariant) options.global_batch_size = kWindow;
  train::Accelerator accelerator(options);
  auto [model, optimizer, loader, scheduler] = accelerator.prepare(*net, sgd, batches, decay);
  prepare(*net);
  Report report;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
      const double norm = accelerator.clip_grad_norm(net->named_parameters(), 0.5);
      optimizer.step();
      scheduler.step();
      optimizer.zero_grad();
      if (!accelerator.sync_gradients()) continue;
      std::vector<float> weights;
      for (const Variable& p : net->parameters()) {
        const std::vector<float> values = p.value().to_vector<float>();
        weights.insert(weights.end(), values.begin(), values.end());
      }
      report.weights.push_back(weights);
      report.skipped.push_back(optimizer.step_was_skipped());
      report.scales.push_back(accelerator.scaler() ? accelerator.scaler()->scale() : 1);
      report.rates.push_back(sgd.lr());
      report.norms.push_back(norm);
    }
  }
  return report;
}

inline std::vector<Report> on_ranks(int size,
                                    const std::function<Report(dist::ProcessGroup&)>& body) {
  std::vector<Report> reports(static_cast<std::size_t>(size));
  dist::run_ranks(size,
                  [&](dist::ProcessGroup& group) {
                    reports[static_cast<std::size_t>(group.rank())] = body(group);
                  },
                  {.timeout = 20});
  return reports;
}

}  // namespace accrue::tests
