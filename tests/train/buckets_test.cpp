// Gradients in buckets: bits and places on several ranks, and windows that fail on one of them.
#include "accrue/accrue.h"
#include "accrue/dist/dist.h"
#include "accrue/tests/dist/messages.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/quick.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

using namespace accrue;
using accrue::test::message;
using accrue::test::There;
using train::Accelerator;

namespace {

using Weights = std::vector<std::vector<float>>;

/// Layers by which a sample goes, chosen by the number of its micro-batch.
struct Net final : nn::Module {
  explicit Net(std::int64_t width) : first(3, width), second(width, width), third(width, 2) {
    register_module("first", first);
    register_module("second", second);
    register_module("third", third);
  }
  nn::Linear first, second, third;
};

using Forward = std::function<Variable(Net&, const Variable& x, std::int64_t begin)>;

/// The middle layer twice.
Variable tied(Net& net, const Variable& x, std::int64_t) {
  return net.third(relu(net.second(relu(net.second(relu(net.first(x)))))));
}

Weights weights_of(const nn::Module& net) {
  Weights weights;
  for (const Variable& parameter : net.parameters()) {
    weights.push_back(parameter.value().to_vector<float>());
  }
  return weights;
}

struct Run {
  std::int64_t width = 4, batch_size = 1, epochs = 2;
  std::int64_t num_samples = 20;
  Forward forward = &tied;
  std::function<void(Accelerator&, Net&)> after_step = [](Accelerator&, Net&) {};
};

data::TensorDataset points(std::int64_t count) {
  Tensor x = Tensor::empty({count, 3}), y = Tensor::empty({count, 2});
  for (Tensor* tensor : {&x, &y}) {
    Generator(5).normal({tensor->mutable_data<float>(), static_cast<std::size_t>(tensor->numel())});
  }
  return data::TensorDataset({x, y});
}

/// Weights after training in windows of 8; ranks start differently.
Weights train_net(train::AcceleratorOptions options, const Run& run) {
  manual_seed(options.process_group ? static_cast<std::uint64_t>(options.process_group->rank())
                                    : 0);
  Net net(run.width);
  optim::SGD sgd(net.named_parameters(), {.lr = 0.1, .momentum = 0.9});
  data::DataLoader batches(points(run.num_samples), {.batch_size = run.batch_size});
  options.global_batch_size = 8;
  Accelerator accelerator(options);
  auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
  for (std::int64_t epoch = 0; epoch < run.epochs; ++epoch) {
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      const std::int64_t begin = batch.size() > 0 ? batch.indices.front() : 0;
      accelerator.backward(nn::mse(run.forward(net, batch.inputs, begin), batch.labels));
      if (accelerator.sync_gradients()) run.after_step(accelerator, net);
      optimizer.step();
      optimizer.zero_grad();
    }
  }
  return weights_of(net);
}

/// What each of `size` ranks ends with.
std::vector<Weights> on_ranks(int size, train::AcceleratorOptions options, const Run& run) {
  std::vector<Weights> results(static_cast<std::size_t>(size));
  dist::run_ranks(size, [&](dist::ProcessGroup& group) {
    train::AcceleratorOptions mine = options;
    mine.process_group = &group;
    results[static_cast<std::size_t>(group.rank())] = train_net(mine, run);
  });
  return results;
}

/// Passes all calls on and counts them, with those of its duplicates.
class CountingGroup final : public dist::ProcessGroup {
 public:
  using Count = std::shared_ptr<std::atomic<int>>;

  CountingGroup(std::shared_ptr<dist::ProcessGroup> inner, Count calls)
      : ProcessGroup(inner->rank(), inner->size(), inner->timeout()),
        inner_(std::move(inner)),
        calls_(std::move(calls)) {}
  const char* backend() const override { return inner_->backend(); }
  std::int64_t step_bytes() const override { return inner_->step_bytes(); }
  std::shared_ptr<ProcessGroup> duplicate() override {
    return std::make_shared<CountingGroup>(inner_->duplicate(), calls_);
  }
  void leave_calls(const std::string& reason) noexcept override { inner_->leave(reason); }
  void move(const dist::Movement& movement) override { inner_->move(movement); }

 private:
  void compare_and_move(const dist::Call& call, const dist::Movement& movement) override {
    ++*calls_;
    inner_->begin(call, movement);
  }

  std::shared_ptr<ProcessGroup> inner_;
  Count calls_;
};

constexpr std::int64_t kCaps[] = {1 << 10, 64 << 10, 25 << 20};

}  // namespace

TEST_CASE("train.buckets: caps and overlap change no bits") {
  const Run run{.width = 160, .epochs = test::is_quick() ? 1 : 2};  // 104 KB
  Run alone = run;
  alone.batch_size = 8;
  const Weights wanted = train_net({}, alone);
  int runs = 0;
  for (const int size : {2, 3, 5}) {
    if (test::is_quick() && size == 3) continue;
    for (const std::int64_t cap : kCaps) {
      for (const bool overlap : {true, false}) {
        const auto all =
            on_ranks(size,
                     {.first_bucket_bytes = cap / 4, .bucket_cap_bytes = cap, .overlap = overlap},
                     run);
        CHECK(std::all_of(all.begin(), all.end(), [&](const Weights& w) { return w == wanted; }));
        ++runs;
      }
    }
  }
  MESSAGE(runs, " runs");
}

TEST_CASE("train.buckets: buckets are summed while backward still runs") {
  dist::run_ranks(2, [](dist::ProcessGroup& group) {
    const auto calls = std::make_shared<std::atomic<int>>(0);
    CountingGroup counting(group.duplicate(), calls);
    Net net(4);
    data::DataLoader batches(points(8), {.batch_size = 4});
    Accelerator accelerator(
        {.process_group = &counting, .first_bucket_bytes = 1, .bucket_cap_bytes = 1});
    auto [model, loader] = accelerator.prepare(net, batches);
    const int before = *calls;
    int hooks = 0;
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      const Variable hidden = net.first(batch.inputs);
      hidden.register_hook([&](const Tensor& gradient) {
        // Layouts and weights, then uses and sums of the four parameters of the other layers.
        for (int i = 0; i < 5000 && *calls < before + 10; ++i) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        CHECK(*calls == before + 10);
        ++hooks;
        return gradient;
      });
      accelerator.backward(nn::mse(net.third(net.second(hidden)), batch.labels));
    }
    CHECK(*calls == before + 16);  // the first layer's, the end and the loss
    CHECK(hooks == 1);
  });
}

TEST_CASE("train.buckets: a layer used in one micro-batch or on one rank only is summed") {
  const Forward by_parity = [](Net& net, const Variable& x, std::int64_t begin) {
    return net.third(relu(begin % 2 == 0 ? net.first(x) : net.second(net.first(x))));
  };
  const Forward by_half = [](Net& net, const Variable& x, std::int64_t begin) {
    return net.third(relu(begin % 8 < 4 ? net.first(x) : net.second(net.first(x))));
  };
  const Forward never = [](Net& net, const Variable& x, std::int64_t) {
    return net.third(net.first(x));
  };
  for (const Forward& forward : {by_parity, by_half, never}) {
    const Run run{.forward = forward};
    const Weights wanted = train_net({}, run);
    for (const int size : {2, 4, 8}) {
      for (const Weights& weights : on_ranks(size, {.bucket_cap_bytes = 1}, run)) {
        CHECK(weights == wanted);
      }
    }
  }
}

TEST_CASE("train.buckets: a gradient has one place, and what no rank used has none") {
  Run run;
  run.forward = [](Net& net, const Variable& x, std::int64_t) { return net.third(net.first(x)); };
  dist::run_ranks(2, [&](dist::ProcessGroup& group) {
    std::vector<const float*> places;
    Run mine = run;
    mine.after_step = [&](Accelerator&, Net& net) {
      CHECK_FALSE(net.second.weight().grad().defined());
      const Tensor grad = net.first.weight().grad();
      CHECK(grad.shares_storage(net.third.bias().grad()));
      places.push_back(grad.data<float>());
      CHECK(places.back() == places.front());
    };
    train_net({.process_group = &group}, mine);
    CHECK(places.size() == 6);
  });
}

TEST_CASE(
    "train.buckets: a backward pass that throws on one rank steps no rank, and training goes on") {
  for (const bool overlap : {true, false}) {
    std::vector<std::string> said(3), later(3);
    std::vector<Weights> before(3), after(3), last(3);
    dist::run_ranks(3, [&](dist::ProcessGroup& group) {
      const auto rank = static_cast<std::size_t>(group.rank());
      Net net(4);
      optim::SGD sgd(net.named_parameters(), {.lr = 0.1});
      data::DataLoader batches(points(32), {.batch_size = 1});
      Accelerator accelerator({.global_batch_size = 8,
                               .process_group = &group,
                               .bucket_cap_bytes = 1,
                               .overlap = overlap});
      auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
      int windows = 0;
      for (const auto& batch : loader) {
        auto scope = accelerator.accumulate(model);
        Variable hidden = net.first(batch.inputs);
        windows += accelerator.sync_gradients();
        const bool is_bad = windows == 2 && accelerator.sync_gradients();
        if (is_bad && rank == 1) {
          hidden.register_hook([](const Tensor&) -> Tensor { throw ValueError("[hook] no"); });
        }
        if (is_bad) before[rank] = weights_of(net);
        const std::string error = message(
            [&] { accelerator.backward(nn::mse(net.third(net.second(hidden)), batch.labels)); });
        CHECK((error != "") == is_bad);
        if (is_bad) {
          said[rank] = error;
          later[rank] = message([&, step = &optimizer] { step->step(); });
          optimizer.zero_grad();
        }
        optimizer.step();
        if (is_bad) {
          CHECK(optimizer.step_was_skipped());
          after[rank] = weights_of(net);
        }
        optimizer.zero_grad();
      }
      last[rank] = weights_of(net);
    });
    CHECK(said[1] == "[hook] no");
    CHECK(said[0] == said[2]);
    CHECK(
        said[0].starts_with("[bucketer] all ranks must complete their gradients, got a failure on "
                            "rank 1: [hook] no; drop the window on all ranks (step 1, bucket "));
    for (std::size_t rank = 0; rank < 3; ++rank) {
      CHECK(later[rank].find("call optimizer.zero_grad() first") != std::string::npos);
      CHECK(before[rank] == after[rank]);
      CHECK(last[rank] == last[0]);
    }
    CHECK(last[0] != after[0]);
  }
}

TEST_CASE("train.buckets: what fails before the last backward pass begins is told to all ranks") {
  // A loss without samples in the last micro-batch; an exception in the first, which poisons.
  for (const bool in_last : {true, false}) {
    std::vector<std::string> said(2);
    dist::run_ranks(2, [&](dist::ProcessGroup& group) {
      const auto rank = static_cast<std::size_t>(group.rank());
      Net net(4);
      data::DataLoader batches(points(8), {.batch_size = 2});
      Accelerator accelerator({.global_batch_size = 8, .process_group = &group});
      auto [model, loader] = accelerator.prepare(net, batches);
      said[rank] = message([&] {
        for (const auto& batch : loader) {
          auto scope = accelerator.accumulate(model);
          Variable y = net.first(batch.inputs);
          const bool is_bad = rank == 0 && accelerator.sync_gradients() == in_last;
          if (is_bad && !in_last)
            y.register_hook([](const Tensor&) -> Tensor { throw ValueError("[hook] no"); });
          const Loss loss = nn::mse(net.third(y), batch.labels);
          const Loss odd = Loss::from_rows(Variable(There::ones({1})), 1);
          try {
            accelerator.backward(is_bad && in_last ? odd : loss);
          } catch (const ValueError&) {  // goes on with a poisoned window
          }
        }
      });
    });
    const char* const cause =
        in_last ? "the loss must be sample-major" : "a backward pass of this window threw";
    for (const std::string& text : said) CHECK(text.find(cause) != std::string::npos);
    CHECK(said[1].find("got a failure on rank 0: [backward] ") != std::string::npos);
  }
}

TEST_CASE("train.buckets: a second backward in the last micro-batch is refused, and nobody waits") {
  dist::run_ranks(2, [](dist::ProcessGroup& group) {
    Net net(4);
    data::DataLoader batches(points(8), {.batch_size = 4});
    Accelerator accelerator({.process_group = &group});
    auto [model, loader] = accelerator.prepare(net, batches);
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      accelerator.backward(nn::mse(tied(net, batch.inputs, 0), batch.labels));
      CHECK_THROWS_AS(accelerator.backward(nn::mse(tied(net, batch.inputs, 0), batch.labels)),
                      StateError);
      CHECK(net.first.weight().grad().defined());
    }
  });
}

TEST_CASE(
    "train.buckets: buckets are built anew for a further model, where no gradients are alive") {
  std::vector<Weights> all(2);
  dist::run_ranks(2, [&](dist::ProcessGroup& group) {
    Net first(4), second(4);
    data::DataLoader batches(points(16), {.batch_size = 4});
    Accelerator accelerator({.process_group = &group});
    auto [model, loader] = accelerator.prepare(first, batches);
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      accelerator.backward(nn::mse(tied(first, batch.inputs, 0), batch.labels));
      CHECK_THROWS_AS(accelerator.prepare(second), StateError);
      for (Variable parameter : first.parameters()) parameter.zero_grad();
    }
    accelerator.prepare(second);
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      const Loss loss = nn::mse(tied(first, batch.inputs, 0), batch.labels) +
                        nn::mse(tied(second, batch.inputs, 0), batch.labels);
      accelerator.backward(loss);
      CHECK(second.first.weight().grad().defined());
      for (Variable parameter : second.parameters()) parameter.zero_grad();
      for (Variable parameter : first.parameters()) parameter.zero_grad();
    }
    CHECK_NOTHROW(accelerator.prepare(first));
    all[static_cast<std::size_t>(group.rank())] = weights_of(second);
  });
  CHECK(all[0] == all[1]);
}

TEST_CASE("train.buckets: options that differ or make no sense are refused on all ranks") {
  const auto said = [](std::int64_t of_rank_0, std::int64_t of_rank_1) {
    std::vector<std::string> texts(2);
    dist::run_ranks(2, [&](dist::ProcessGroup& group) {
      const std::int64_t cap = group.rank() == 0 ? of_rank_0 : of_rank_1;
      texts[static_cast<std::size_t>(group.rank())] =
          message([&] { train_net({.process_group = &group, .bucket_cap_bytes = cap}, {}); });
    });
    CHECK(texts[0] == texts[1]);
    return texts[0];
  };
  CHECK(said(1, 2).find("got bucket_cap_bytes = 1 on rank 0 and bucket_cap_bytes = 2 on rank 1") !=
        std::string::npos);
  CHECK(said(0, 0).find("must be positive, got 0") != std::string::npos);
}

TEST_CASE("train.buckets: a rank that does not come is named with window and bucket") {
  std::string said;
  std::atomic<bool> is_over = false;
  dist::run_ranks(2, [&](dist::ProcessGroup& group) {
    Run run;
    run.forward = [&](Net& net, const Variable& x, std::int64_t begin) {
      if (begin >= 8) group.set_timeout(0.3);
      while (begin >= 8 && group.rank() == 1 && !is_over) std::this_thread::yield();
      return tied(net, x, begin);
    };
    const std::string text = message([&] { train_net({.process_group = &group}, run); });
    if (group.rank() == 0) said = text;
    is_over = true;
  });
  // Window 0 takes five calls, for its last micro-batch alone; devices are connected by three.
  const int call = test::device_under_test().is_cpu() ? 6 : 9;
  CAPTURE(said);
  CHECK(said.find(text("got nothing from rank 1 for call ", call, ", all_gather_bytes")) !=
        std::string::npos);
  CHECK(said.ends_with("(step 1, bucket 0)"));
}
