// Upstream's choices: the golden cases of Accelerate that need one process.
#include "accrue/core/bits.h"
#include "accrue/data/tensor_dataset.h"
#include "accrue/nn/linear.h"
#include "accrue/nn/loss.h"
#include "accrue/optim/sgd.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/golden_cases.h"
#include "accrue/train/accelerator.h"

#include <nlohmann/json.hpp>

using namespace accrue;
using nlohmann::json;

namespace {

data::DataLoader index_loader(std::int64_t count, std::int64_t batch_size) {
  return data::DataLoader(data::TensorDataset({Tensor::arange(count)}), {.batch_size = batch_size});
}

}  // namespace

TEST_CASE("train.compat: sync_gradients follows Accelerate's counter in every golden case") {
  int count = 0;
  for (const json& entry : tests::golden_cases("sync_gradients")) {
    train::Accelerator accelerator(
        {.gradient_accumulation_plugin =
             train::GradientAccumulationPlugin{entry["num_steps"], entry["sync_with_dataloader"]},
         .compat = train::Compat::accelerate()});
    auto batches = index_loader(entry["batches_per_epoch"], 1);
    auto loader = accelerator.prepare(batches);
    const auto expected = entry["expected"].get<std::vector<std::vector<bool>>>();
    std::vector<std::vector<bool>> syncs;
    for (std::size_t epoch = 0; epoch < expected.size(); ++epoch) {
      std::vector<bool>& flags = syncs.emplace_back();
      for ([[maybe_unused]] const auto& batch : loader) {
        auto scope = accelerator.accumulate();
        flags.push_back(accelerator.sync_gradients());
      }
    }
    CHECK_MESSAGE(syncs == expected, entry["id"].get<std::string>());
    ++count;
  }
  CHECK(count == 20);
}

TEST_CASE("train.compat: the end of a loader is known at its last batch, in every epoch") {
  const json cases = tests::golden_cases("end_of_dataloader");
  REQUIRE(cases.size() == 1);
  const json& entry = cases[0];
  train::Accelerator accelerator(
      {.gradient_accumulation_steps = 1000, .compat = train::Compat::accelerate()});
  auto batches = index_loader(entry["dataset_len"], entry["batch_size"]);
  auto loader = accelerator.prepare(batches);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<bool> flags;
    for ([[maybe_unused]] const auto& batch : loader) {
      auto scope = accelerator.accumulate();
      flags.push_back(accelerator.sync_gradients());
    }
    CHECK(flags == entry["expected_flags"].get<std::vector<bool>>());
  }
}

TEST_CASE("train.compat: skip_first_batches starts later in every one-process golden case") {
  int count = 0;
  for (const json& entry : tests::golden_cases("skip_batches")) {
    if (entry["world_size"] != 1) {
      MESSAGE(entry["id"].get<std::string>()
              << " needs " << entry["world_size"].get<int>() << " processes: not run here");
      continue;
    }
    auto loader = index_loader(entry["dataset_len"], entry["batch_size"]);
    std::vector<std::vector<std::int64_t>> batches;
    for (const auto& batch : data::skip_first_batches(loader, entry["skip"])) {
      batches.push_back(batch.indices);
    }
    CHECK(batches == entry["expected"][0].get<std::vector<std::vector<std::int64_t>>>());
    ++count;
  }
  CHECK(count == 1);
}

TEST_CASE("train.compat: a short last window is divided by the configured steps") {
  const Tensor x = Tensor::ones({5, 1});
  data::DataLoader batches(data::TensorDataset({x, x}), {.batch_size = 1});
  nn::Linear net(Variable::leaf(Tensor::zeros({1, 1})));
  optim::SGD sgd(net.parameters(), {.lr = 0});
  train::Accelerator accelerator(
      {.gradient_accumulation_steps = 4, .compat = train::Compat::accelerate()});
  auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
  std::vector<float> gradients;
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
    if (accelerator.sync_gradients()) gradients.push_back(model.weight().grad().item<float>());
    optimizer.step();
    optimizer.zero_grad();
  }
  CHECK(gradients == std::vector<float>{-2.0F, -0.5F});
}

TEST_CASE("train.compat: without a loader the counter decides alone") {
  train::Accelerator accelerator(
      {.gradient_accumulation_steps = 4, .compat = train::Compat::accelerate()});
  std::string syncs;
  for (int i = 0; i < 9; ++i) {
    auto scope = accelerator.accumulate();
    syncs += accelerator.sync_gradients() ? 'T' : '.';
  }
  CHECK(syncs == "...T...T.");
}
