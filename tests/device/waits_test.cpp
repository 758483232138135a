// How often a step of training waits for a device: not more often for more parameters.
#include "accrue/accrue.h"
#include "accrue/dist/threads.h"
#include "accrue/kernels/simt/streams.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>
#include <vector>

using namespace accrue;

namespace {

struct Case {
  int layers = 1;
  std::int64_t steps = 1;  ///< micro-batches of a window
  train::MixedPrecision precision = train::MixedPrecision::no;
  double norm_type = 2;
  int ranks = 1;  ///< threads, with a device each and buckets of one parameter
};

/// Of all ranks in the last of three windows.
std::size_t waits_of_window(const Case& it) {
  constexpr std::int64_t kWindow = 16;
  std::vector<std::size_t> waits;  // at the ends of windows
  dist::run_ranks(it.ranks, [&](dist::ProcessGroup& group) {
    manual_seed(1);
    nn::Sequential net;
    for (int i = 0; i < it.layers; ++i) net.add<nn::Linear>(4, 4);
    optim::AdamW adam(net.named_parameters(), {.lr = 0.01});
    const data::TensorDataset samples(
        {Tensor::ones({3 * kWindow, 4}), Tensor::ones({3 * kWindow}, DType::int64)});
    data::DataLoader batches(samples, {.batch_size = kWindow / it.steps / it.ranks});
    train::Accelerator accelerator({.gradient_accumulation_steps = it.steps,
                                    .device = Device::cuda(0),
                                    .process_group = &group,
                                    .mixed_precision = it.precision,
                                    .first_bucket_bytes = 64,
                                    .bucket_cap_bytes = 64});
    auto [model, optimizer, loader] = accelerator.prepare(net, adam, batches);
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      accelerator.backward(nn::cross_entropy(model(batch.inputs), batch.labels));
      accelerator.clip_grad_norm(model.parameters(), 0.5, it.norm_type);
      accelerator.clip_grad_value(model.parameters(), 0.1);
      optimizer.step();
      optimizer.zero_grad();
      if (!accelerator.sync_gradients()) continue;
      group.barrier();
      if (group.rank() == 0) waits.push_back(simt::num_waits());
      group.barrier();
    }
  });
  REQUIRE(waits.size() == 3);
  return waits[2] - waits[1];
}

}  // namespace

TEST_CASE("device.waits: a step waits as often for one parameter as for many") {
  const Case cases[] = {{},
                        {.norm_type = HUGE_VAL},
                        {.precision = train::MixedPrecision::fp16},
                        {.ranks = 2},
                        {.precision = train::MixedPrecision::fp16, .ranks = 2}};
  for (Case it : cases) {
    CAPTURE(it.ranks);
    const std::size_t few = waits_of_window(it);
    it.layers = 5;
    CHECK(waits_of_window(it) == few);
    MESSAGE(few << " waits of " << it.ranks << " ranks");
  }
}

TEST_CASE("device.waits: a micro-batch waits for the number of its targets alone") {
  const Tensor far = Tensor::ones({1}).to(Device::cuda(0));
  const std::size_t before = simt::num_waits();
  far.to(Device::cpu());
  const std::size_t read = simt::num_waits() - before;
  CHECK(waits_of_window({.steps = 4}) == waits_of_window({.steps = 1}) + 3 * read);
}
