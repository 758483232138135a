// The documentation's accumulated training: 4 batches of 2 by Accelerator, and a clone that takes
// all 8 samples at once.
#include "accrue/accrue.h"
#include "accrue/bench/support/hex_line.h"
#include "accrue/bench/support/options.h"
#include "accrue/bench/support/program.h"

#include <fmt/format.h>

namespace accrue::bench {
namespace {

void print_weight(const char* what, const nn::Linear& model, bool hex = false) {
  fmt::print("{} is {:.5f}\n", what, model.weight().item<float>());
  if (hex) print_hex_line(model.weight().value());
}

int run(int argc, char** argv) {
  bool hex = false;
  Options options("Fits y = 2x with and without gradient accumulation.");
  options.flag("hex", hex, "also print the bits of the final weights");
  Device device;
  options.device(device);
  options.parse(argc, argv);

  const Tensor x = Tensor::of<float>({1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor y = Tensor::of<float>({2, 4, 6, 8, 10, 12, 14, 16});
  constexpr std::int64_t kGradientAccumulationSteps = 4;
  data::DataLoader batches(data::TensorDataset({x, y}),
                           {.batch_size = x.size(0) / kGradientAccumulationSteps});

  nn::Linear net(Variable::leaf(Tensor::zeros({1, 1})));
  nn::Linear clone(Variable::leaf(Tensor::zeros({1, 1})));
  optim::SGD sgd(net.parameters(), {.lr = 0.02});
  optim::SGD clone_sgd(clone.parameters(), {.lr = 0.02});
  print_weight("initial model weight", net);
  print_weight("initial model weight", clone);

  train::Accelerator accelerator(
      {.gradient_accumulation_steps = kGradientAccumulationSteps, .device = device});
  auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
  int index = 0;
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    fmt::print("{} {}\n", index++, batch.inputs.to(Device::cpu()).str());
    const Variable outputs = model(batch.inputs.view({-1, 1}));
    accelerator.backward(nn::mse(outputs, batch.labels.view({-1, 1})));
    optimizer.step();
    optimizer.zero_grad();
  }

  clone.to(device);
  mse_loss(clone(x.to(device).view({-1, 1})), y.to(device).view({-1, 1})).backward();
  clone_sgd.step();

  print_weight("w/ accumulation, the final model weight", net, hex);
  print_weight("w/o accumulation, the final model weight", clone, hex);
  return kDone;
}

}  // namespace
}  // namespace accrue::bench

int main(int argc, char** argv) {
  return accrue::bench::run_program(accrue::bench::run, argc, argv);
}
