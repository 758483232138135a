// Several ranks without windows: upstream's choices, and plain passes with real weights.
#include "accrue/accrue.h"
#include "accrue/dist/dist.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/train/line.h"

#include <cmath>
#include <mutex>
#include <set>

using namespace accrue;
using accrue::test::There;
using train::Accelerator;
using train::AcceleratorOptions;
using train::Compat;

namespace {

/// One epoch of the line's step on each rank; what `look` sees at its micro-batches.
template <class Look>
void train_line(AcceleratorOptions options, std::int64_t n, std::int64_t b, const Look& look) {
  tests::Line line;
  data::DataLoader batches = tests::line_loader(n, b);
  Accelerator accelerator(std::move(options));
  auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, batches);
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
    look(accelerator, line, batch);
    optimizer.step();
    optimizer.zero_grad();
  }
}

float line_gradient(AcceleratorOptions options, std::int64_t n, std::int64_t b) {
  float gradient = 0;
  train_line(std::move(options), n, b, [&](const Accelerator& accelerator, auto& line, auto&) {
    if (accelerator.sync_gradients() && !accelerator.optimizer_step_was_skipped())
      gradient = line.model.weight().grad().template item<float>();
  });
  return gradient;
}

}  // namespace

TEST_CASE("train.compat_ranks: duplicates count, and ranks and steps divide") {
  dist::run_ranks(2, [](dist::ProcessGroup& group) {
    // Points 1 2 3 with gradients -4 -16 -36: rank 0 reads 1 and 3, rank 1 reads 2 and 1 again.
    AcceleratorOptions options{.gradient_accumulation_steps = 2, .process_group = &group};
    CHECK(line_gradient(options, 3, 1) == -56.0F / 3);
    options.compat = Compat::accelerate();
    CHECK(line_gradient(options, 3, 1) == -15);
    options.gradient_accumulation_steps = 4;  // a short window: upstream divides by 4 all the same
    CHECK(line_gradient(options, 3, 1) == -7.5);
  });
}

TEST_CASE("train.compat_ranks: windows have the bits of DistributedDataParallel with no_sync") {
  int count = 0;
  for (const int size : {2, 3, 4}) {
    for (const bool split : {false, true}) {
      dist::run_ranks(size, [&](dist::ProcessGroup& group) {
        const std::int64_t n = 37, b = split ? 2 * size : 3;
        constexpr std::int64_t kSteps = 3;
        std::vector<std::uint32_t> seen, expected;
        train_line({.gradient_accumulation_steps = kSteps,
                    .compat = Compat::accelerate(),
                    .dataloader_config = train::DataLoaderConfiguration{.split_batches = split},
                    .process_group = &group},
                   n,
                   b,
                   [&](const Accelerator&, const tests::Line& line, const data::Batch&) {
                     seen.push_back(tests::bits(line.model.weight().grad().item<float>()));
                   });

        tests::Line line;
        train::DistributedDataParallel model(line.model, {.process_group = &group});
        data::DataLoader batches = tests::line_loader(n, b);
        data::ShardedLoader shards(
            batches, {.rank = group.rank(), .world_size = size, .split_batches = split});
        std::int64_t index = 0;
        for (const auto& batch : shards) {
          ++index;
          const bool syncs = index % kSteps == 0 || index == shards.size();
          const Loss loss = nn::mse(model(batch.inputs), batch.labels);
          const Variable scaled = loss.sum() / loss.weight().value() / double{kSteps};
          if (syncs) {
            model.backward(scaled);
          } else {
            const auto local = model.no_sync();
            model.backward(scaled);
          }
          expected.push_back(tests::bits(line.model.weight().grad().item<float>()));
          if (!syncs) continue;
          line.optimizer.step();
          line.optimizer.zero_grad();
        }
        CHECK(seen == expected);
      });
      ++count;
    }
  }
  CHECK(count == 6);
}

TEST_CASE("train.compat_ranks: schedules step once per rank, unless ranks split batches") {
  struct Setting {
    int size;
    bool split, with_optimizer;
    std::vector<std::int64_t> steps;
  };
  const std::vector<Setting> settings = {{1, false, true, {0, 0, 0, 1, 1, 1, 1, 2}},
                                         {2, false, true, {0, 0, 0, 2, 2, 2, 2, 4}},
                                         {2, true, true, {0, 0, 0, 1, 1, 1, 1, 2}},
                                         {2, false, false, {1, 2, 3, 4, 5, 6, 7, 8}}};
  for (const Setting& setting : settings) {
    dist::run_ranks(setting.size, [&](dist::ProcessGroup& group) {
      tests::Line line;
      optim::LambdaLR schedule(line.optimizer,
                               [](std::int64_t t) { return 1 - static_cast<double>(t) / 10; });
      Accelerator accelerator(
          {.gradient_accumulation_steps = 4,
           .compat = Compat::accelerate(),
           .dataloader_config = train::DataLoaderConfiguration{.split_batches = setting.split},
           .process_group = &group,
           .step_scheduler_with_optimizer = setting.with_optimizer});
      auto scheduler = accelerator.prepare(schedule);
      std::vector<std::int64_t> steps;
      for (int i = 0; i < 8; ++i) {
        auto scope = accelerator.accumulate();
        scheduler.step();
        steps.push_back(schedule.last_step());
      }
      CHECK(steps == setting.steps);
    });
  }
  dist::run_ranks(2, [](dist::ProcessGroup& group) {
    nn::Linear net(1, 1);
    optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
    optim::OneCycleLR schedule(sgd, {.max_lrs = {0.1}, .total = 5});
    Accelerator accelerator({.compat = Compat::accelerate(), .process_group = &group});
    auto scheduler = accelerator.prepare(schedule);
    std::vector<std::int64_t> steps;
    for (int i = 0; i < 3; ++i) {
      auto scope = accelerator.accumulate();
      scheduler.step();
      steps.push_back(schedule.last_step());
    }
    CHECK(steps == std::vector<std::int64_t>{2, 4, 5});
  });
}

TEST_CASE(
    "train.compat_ranks: plain passes divide by the weight of all ranks, also of empty ones") {
  int count = 0;
  for (const std::int64_t n : {1, 2, 5, 8, 13}) {
    const float alone = line_gradient({.global_batch_size = 8, .invariant = false}, n, 8);
    for (const int size : {2, 3, 5}) {
      dist::run_ranks(size, [&](dist::ProcessGroup& group) {
        const AcceleratorOptions options{
            .global_batch_size = 8, .invariant = false, .process_group = &group};
        CHECK(line_gradient(options, n, 2) == doctest::Approx(alone).epsilon(1e-5));
        double loss = 0;
        train_line(options, n, 2, [&](const Accelerator& accelerator, auto&, auto&) {
          loss = accelerator.window_loss();
        });
        const Tensor all = group.all_gather(There::full({1}, loss));
        for (int rank = 0; rank < size; ++rank) CHECK(all[rank].item<float>() > 0);
      });
      ++count;
    }
  }
  CHECK(count == 15);
}

TEST_CASE("train.compat_ranks: parameters of no prepared model keep gradients of their rank") {
  dist::run_ranks(2, [](dist::ProcessGroup& group) {
    tests::Line line, outside;
    data::DataLoader batches = tests::line_loader(4, 2);
    Accelerator accelerator({.global_batch_size = 4, .invariant = false, .process_group = &group});
    auto [model, loader] = accelerator.prepare(line.model, batches);
    outside.model.to(accelerator.device());
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      accelerator.backward(
          nn::mse(model(batch.inputs) + outside.model(batch.inputs), batch.labels));
      // Rows give -4 -16 on rank 0, -36 -64 on rank 1.
      CHECK(line.model.weight().grad().item<float>() == -30);
      CHECK(outside.model.weight().grad().item<float>() == (group.rank() == 0 ? -10 : -50));
    }
  });
}

TEST_CASE("train.compat_ranks: a hook of no prepared model that throws on one rank steps no rank") {
  dist::run_ranks(2, [](dist::ProcessGroup& group) {
    tests::Line line, outside;
    data::DataLoader batches = tests::line_loader(4, 2);
    Accelerator accelerator({.global_batch_size = 4, .invariant = false, .process_group = &group});
    auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, batches);
    outside.model.to(accelerator.device());
    if (group.rank() == 1) {
      outside.model.weight().register_hook(
          [](const Tensor&) -> Tensor { throw ValueError("stop"); });
    }
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      CHECK_THROWS_AS(accelerator.backward(
                          nn::mse(model(batch.inputs) + outside.model(batch.inputs), batch.labels)),
                      Error);
      optimizer.zero_grad();
      optimizer.step();
      CHECK(line.weight() == 0);
    }
  });
}

TEST_CASE("train.compat_ranks: passes under no_sync add up until one that averages") {
  dist::run_ranks(2, [](dist::ProcessGroup& group) {
    tests::Line line;
    Accelerator accelerator({.compat = Compat::accelerate(), .process_group = &group});
    auto model = std::ref(accelerator.prepare(line.model));
    const auto pass = [&] {
      const Tensor x = Tensor::full({1, 1}, group.rank() + 1).to(accelerator.device());
      accelerator.backward(sum(model(Variable(x))));
      return line.model.weight().grad().item<float>();
    };
    {
      const auto local = accelerator.no_sync(line.model);
      CHECK(pass() == static_cast<float>(group.rank() + 1));
      CHECK(pass() == static_cast<float>(2 * group.rank() + 2));
    }
    CHECK(pass() == 4.5F);
  });
}

TEST_CASE("train.compat_ranks: a rank that cannot go backward is named, and nobody steps") {
  std::mutex mutex;
  std::set<std::string> errors;
  dist::run_ranks(3, [&](dist::ProcessGroup& group) {
    tests::Line line;
    data::DataLoader batches = tests::line_loader(12, 2);
    Accelerator accelerator({.compat = Compat::accelerate(), .process_group = &group});
    auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, batches);
    int index = 0;
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      const Loss loss = nn::mse(model(batch.inputs), batch.labels);
      const float before = line.weight();
      try {
        if (index == 0 && group.rank() == 1) loss.sum().backward();  // releases the graph
        accelerator.backward(loss.sum());
      } catch (const Error& error) {
        const std::lock_guard lock(mutex);
        errors.insert(error.what());
        optimizer.zero_grad();
      }
      optimizer.step();
      optimizer.zero_grad();
      CHECK((line.weight() == before) == (index == 0));
      ++index;
    }
    CHECK(index == 2);
    const Tensor all = group.all_gather(line.model.weight().value());
    for (int rank = 1; rank < 3; ++rank) CHECK(equal_bits(all[rank], all[0]));
  });
  REQUIRE(errors.size() == 2);
  CHECK(std::any_of(errors.begin(), errors.end(), [](const std::string& error) {
    return error.find("rank 1: [backward]") != std::string::npos;
  }));
}

TEST_CASE(
    "train.compat_ranks: ranks that pass different losses, or leave models out, are refused") {
  dist::run_ranks(2, [](dist::ProcessGroup& group) {
    tests::Line line;
    data::DataLoader batches = tests::line_loader(4, 2);
    Accelerator accelerator({.invariant = false, .process_group = &group});
    auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, batches);
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      const Loss loss = nn::mse(model(batch.inputs), batch.labels);
      if (group.rank() == 0) {
        CHECK_THROWS_AS(accelerator.backward(loss), MismatchError);
      } else {
        CHECK_THROWS_AS(accelerator.backward(loss.sum()), MismatchError);
      }
      optimizer.zero_grad();
    }
    tests::Line outside;
    Accelerator second({.compat = Compat::accelerate(), .process_group = &group});
    second.prepare(outside.optimizer);
    auto scope = second.accumulate();
    CHECK_THROWS_WITH_AS(
        second.backward(sum(outside.model(Tensor::ones({1, 1})))),
        "[backward] with several ranks all parameters must belong to a prepared model, got 1 of "
        "optimizers that do not; pass their models to prepare()",
        StateError);
  });
}

TEST_CASE("train.compat_ranks: buffers are rank 0's after each window, in windows too") {
  struct Counting : nn::Module {
    nn::Linear layer{1, 1};
    Tensor seen;
    int rank;
    explicit Counting(int of_rank) : rank(of_rank) {
      register_module("layer", layer);
      seen = register_buffer("seen", Tensor::zeros({}));
    }
    Variable operator()(const Tensor& x) {
      seen.fill(seen.item<float>() + static_cast<float>(x.size(0) + 10 * rank));
      return layer(Variable(x));
    }
  };
  for (const bool compat : {false, true}) {
    dist::run_ranks(2, [&](dist::ProcessGroup& group) {
      Counting net(group.rank());
      optim::SGD sgd(net.parameters(), {.lr = 0.01});
      data::DataLoader batches = tests::line_loader(6, 2);  // rank 0 has 4 samples
      AcceleratorOptions options{.process_group = &group};
      if (compat) options.compat = Compat::accelerate();
      Accelerator accelerator(options);
      auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
      for (const auto& batch : loader) {
        auto scope = accelerator.accumulate(model);
        accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
        optimizer.step();
        optimizer.zero_grad();
      }
      const Tensor all = group.all_gather(net.seen);
      CHECK(all[0].item<float>() == 4);
      CHECK(all[1].item<float>() == 4);
    });
  }
}
