// The documentation's plain loop: the loss is divided by hand and every fourth batch steps.
#include "accrue/accrue.h"
#include "accrue/bench/support/hex_line.h"
#include "accrue/bench/support/options.h"
#include "accrue/bench/support/program.h"

#include <fmt/format.h>

namespace accrue::bench {
namespace {

int run(int argc, char** argv) {
  bool hex = false;
  Options options("Fits y = 2x by 4 accumulated batches of 2, without Accelerator.");
  options.flag("hex", hex, "also print the bits of the weight");
  Device device;
  options.device(device);
  options.parse(argc, argv);

  constexpr int kGradientAccumulationSteps = 4;
  const Tensor x = Tensor::of<float>({1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor y = Tensor::of<float>({2, 4, 6, 8, 10, 12, 14, 16});
  data::DataLoader loader(data::TensorDataset({x, y}), {.batch_size = 2});
  nn::Linear model(Variable::leaf(Tensor::zeros({1, 1})));
  model.to(device);
  optim::SGD optimizer(model.parameters(), {.lr = 0.02});
  fmt::print("initial model weight is {:.5f}\n", model.weight().item<float>());

  int index = 0;
  for (const auto& batch : loader) {
    const Variable outputs = model(batch.inputs.to(device).view({-1, 1}));
    const Variable loss = mse_loss(outputs, batch.labels.to(device).view({-1, 1}));
    (loss / kGradientAccumulationSteps).backward();
    if (++index % kGradientAccumulationSteps == 0) {
      optimizer.step();
      optimizer.zero_grad();
    }
  }

  fmt::print("the final model weight is {:.5f}\n", model.weight().item<float>());
  if (hex) print_hex_line(model.weight().value());
  return kDone;
}

}  // namespace
}  // namespace accrue::bench

int main(int argc, char** argv) {
  return accrue::bench::run_program(accrue::bench::run, argc, argv);
}
