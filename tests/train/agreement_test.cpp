// What all ranks must have alike: loaders, seeds, frozen parameters, rows that they gather.
#include "accrue/accrue.h"
#include "accrue/dist/dist.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <functional>
#include <optional>

using namespace accrue;
using accrue::test::There;
using train::Accelerator;
using train::DataLoaderConfiguration;

namespace {

constexpr const char* kAdvice =
    "; build it alike everywhere, and call manual_seed with the same seed on every rank before";

/// The text of the MismatchError that `body` throws on both of two ranks; "" for none.
std::string mismatch(const std::function<void(dist::ProcessGroup&)>& body) {
  std::vector<std::string> errors(2);
  dist::run_ranks(2,
                  [&](dist::ProcessGroup& group) {
                    try {
                      body(group);
                    } catch (const MismatchError& error) {
                      errors[static_cast<std::size_t>(group.rank())] = error.what();
                    }
                  },
                  {.timeout = 10});
  CHECK(errors[0] == errors[1]);
  return errors[0];
}

std::string loader_mismatch(const std::string& first, const std::string& second) {
  return "[prepare] all ranks must have the same loader, got " + first + " on rank 0 and " +
         second + " on rank 1" + kAdvice;
}

data::TensorDataset points(std::int64_t count) {
  Tensor x = Tensor::empty({count, 3}), y = Tensor::empty({count, 2});
  for (Tensor* tensor : {&x, &y}) {
    Generator(5).normal({tensor->mutable_data<float>(), static_cast<std::size_t>(tensor->numel())});
  }
  return data::TensorDataset({x, y});
}

/// Two layers with dropout between, trained in windows of 8 with a change before each batch.
std::string train_net(double p,
                      const std::function<void(nn::Linear&, int rank, int step)>& change) {
  return mismatch([&](dist::ProcessGroup& group) {
    struct Net final : nn::Module {
      explicit Net(double p) : drop(p) {
        register_module("first", first);
        register_module("drop", drop);
        register_module("second", second);
      }
      nn::Linear first{3, 4}, second{4, 2};
      nn::Dropout drop;
    } net(p);
    optim::SGD sgd(net.named_parameters(), {.lr = 0.1});
    data::DataLoader batches(points(16), {.batch_size = 2});
    Accelerator accelerator({.global_batch_size = 8, .process_group = &group});
    auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
    int step = 0;
    for (const auto& batch : loader) {
      change(net.second, group.rank(), step++);
      auto scope = accelerator.accumulate(model);
      const Variable hidden = net.drop(net.first(batch.inputs));
      accelerator.backward(nn::mse(net.second(hidden), batch.labels));
      optimizer.step();
      optimizer.zero_grad();
    }
    CHECK(step == 4);
  });
}

}  // namespace

TEST_CASE("train.agreement: ranks that would shuffle in different orders are refused") {
  const auto prepare = [](const data::DataLoaderOptions& options,
                          std::optional<DataLoaderConfiguration> config,
                          bool compat) {
    return mismatch([&](dist::ProcessGroup& group) {
      manual_seed(100 + static_cast<std::uint64_t>(group.rank()));
      data::DataLoader batches(points(16), options);
      Accelerator accelerator({.compat = {compat}, .process_group = &group});
      config ? accelerator.prepare_data_loader(batches, *config) : accelerator.prepare(batches);
    });
  };
  const std::string differs = loader_mismatch("shuffling with seed 100 from epoch 0",
                                              "shuffling with seed 101 from epoch 0");
  const DataLoaderConfiguration dispatch{.dispatch_batches = true};
  for (const bool compat : {false, true}) {
    CHECK(prepare({.batch_size = 4, .shuffle = true}, {}, compat) == differs);
    CHECK(prepare({.batch_size = 4, .shuffle = true}, DataLoaderConfiguration(), compat) ==
          differs);
    CHECK(prepare({.batch_size = 4, .shuffle = true, .seed = 1}, {}, compat).empty());
    CHECK(prepare({.batch_size = 4}, {}, compat).empty());
    CHECK(prepare({.batch_size = 4, .shuffle = true}, dispatch, compat).empty());
  }
}

TEST_CASE("train.agreement: ranks with other loaders or options are refused, also wrong ones") {
  const auto prepare = [](std::int64_t count,
                          const data::DataLoaderOptions& loader,
                          train::AcceleratorOptions options) {
    return mismatch([&](dist::ProcessGroup& group) {
      const bool is_first = group.rank() == 0;
      data::DataLoader batches(points(is_first ? 16 : count),
                               is_first ? data::DataLoaderOptions{.batch_size = 2} : loader);
      train::AcceleratorOptions mine;
      if (!is_first) mine = options;
      mine.process_group = &group;
      Accelerator accelerator(mine);
      accelerator.prepare(batches);
    });
  };
  const data::DataLoaderOptions two{.batch_size = 2};
  CHECK(prepare(16, two, {}).empty());
  CHECK(prepare(15, two, {}) == loader_mismatch("16 samples", "15 samples"));
  CHECK(prepare(16, {.batch_size = 3}, {}) == loader_mismatch("batch_size 2", "batch_size 3"));
  CHECK(prepare(16, {.batch_size = 2, .drop_last = true}, {}) ==
        loader_mismatch("drop_last false", "drop_last true"));
  CHECK(prepare(16, two, {.global_batch_size = 8}) ==
        loader_mismatch("global_batch_size 0", "global_batch_size 8"));
  CHECK(prepare(16, two, {.gradient_accumulation_steps = 2}) ==
        loader_mismatch("gradient_accumulation_steps 1", "gradient_accumulation_steps 2"));
  CHECK(prepare(16, two, {.lanes = 4}) == loader_mismatch("lanes 8", "lanes 4"));
  CHECK(prepare(16, two, {.dealing = data::Dealing::round_robin}) ==
        loader_mismatch("contiguous dealing", "round robin dealing"));
}

TEST_CASE("train.agreement: ranks that deal in different ways are refused") {
  const auto error = mismatch([](dist::ProcessGroup& group) {
    data::DataLoader batches(points(16), {.batch_size = 2});
    Accelerator accelerator({.process_group = &group});
    accelerator.prepare_data_loader(batches, {.split_batches = group.rank() == 1});
  });
  CHECK(error == loader_mismatch("split_batches false", "split_batches true"));
}

TEST_CASE("train.agreement: dropout needs one seed, and without it seeds may differ") {
  const auto seed = [](nn::Linear&, int rank, int step) {
    if (step == 1) manual_seed(7 + static_cast<std::uint64_t>(rank));
  };
  CHECK(train_net(0.5, [](nn::Linear&, int, int) { manual_seed(7); }).empty());
  CHECK(train_net(0, seed).empty());
  CHECK(train_net(0.5, seed) ==
        "[window] all ranks must draw the same random numbers, got seed 7 on rank 0 and seed 8 "
        "on rank 1; call manual_seed with the same seed on every rank");
}

TEST_CASE("train.agreement: a parameter is frozen on all ranks or on none") {
  CHECK(mismatch([](dist::ProcessGroup& group) {
          nn::Linear net(2, 3);
          net.weight().set_requires_grad(group.rank() == 0);
          Accelerator({.process_group = &group}).prepare(net);
        }) ==
        "[prepare] all ranks must have the same model, got weight [3, 2] float32 on rank 0 and "
        "weight [3, 2] float32 frozen on rank 1; build the model alike everywhere");
  CHECK_FALSE(mismatch([](dist::ProcessGroup& group) {
                nn::Linear net(2, 3);
                net.weight().set_requires_grad(group.rank() == 0);
                const train::DistributedDataParallel model(net, {.process_group = &group});
              }).empty());
  CHECK(train_net(0, [](nn::Linear& layer, int, int step) {
          if (step == 2) layer.set_requires_grad(false);
        }).empty());
  CHECK(train_net(0,
                  [](nn::Linear& layer, int rank, int step) {
                    if (step == 2 && rank == 1) layer.weight().set_requires_grad(false);
                  }) ==
        "[window] all ranks must train the same parameters, got none frozen on rank 0 and frozen "
        "second.weight on rank 1; call set_requires_grad alike everywhere");
}

TEST_CASE("train.agreement: ranks drop the same gathered rows, or none gets any") {
  const auto gather = [](std::int64_t on_second) {
    return mismatch([&](dist::ProcessGroup& group) {
      data::DataLoader batches(points(5), {.batch_size = 2});
      Accelerator accelerator({.process_group = &group});
      std::int64_t rows = 0;
      for (const auto& batch : accelerator.prepare_data_loader(batches)) {
        const std::int64_t mine = group.rank() == 1 ? on_second : batch.size();
        rows += accelerator.gather_for_metrics(There::ones({mine})).size(0);
      }
      CHECK(rows == 5);
    });
  };
  CHECK(gather(2).empty());
  CHECK(gather(1) ==
        "[gather_rows] all but one size must agree on all ranks, got [1] float32 that keeps "
        "1 rows on rank 0 and [1] float32 that keeps all rows on rank 1");
  CHECK_FALSE(gather(0).empty());
}
