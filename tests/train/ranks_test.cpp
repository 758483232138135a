// Several ranks, as threads: what they do together, and that their windows have the bits of one.
#include "accrue/accrue.h"
#include "accrue/dist/dist.h"
#include "accrue/tests/dist/messages.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <numeric>
#include <sstream>

using namespace accrue;
using accrue::test::There;
using train::Accelerator;
using train::ProcessState;
using train::RankReduction;

namespace {

/// What each rank returns.
template <class T>
std::vector<T> on_ranks(int size, const std::function<T(dist::ProcessGroup&)>& body) {
  std::vector<T> results(static_cast<std::size_t>(size));
  dist::run_ranks(size, [&](dist::ProcessGroup& group) {
    results[static_cast<std::size_t>(group.rank())] = body(group);
  });
  return results;
}

bool each_once(std::vector<std::int64_t> numbers, std::int64_t count) {
  std::sort(numbers.begin(), numbers.end());
  std::vector<std::int64_t> wanted(static_cast<std::size_t>(count));
  std::iota(wanted.begin(), wanted.end(), 0);
  return numbers == wanted;
}

/// Weights of a linear layer after two epochs on `num_samples` points; ranks start differently.
std::vector<float> train_layer(train::AcceleratorOptions options,
                               std::int64_t num_samples,
                               std::int64_t batch_size) {
  manual_seed(options.process_group ? static_cast<std::uint64_t>(options.process_group->rank())
                                    : 0);
  nn::Linear net(3, 2);
  Tensor x = Tensor::empty({num_samples, 3}), y = Tensor::empty({num_samples, 2});
  for (Tensor* tensor : {&x, &y}) {
    Generator(5).normal({tensor->mutable_data<float>(), static_cast<std::size_t>(tensor->numel())});
  }
  optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  data::DataLoader batches(data::TensorDataset({x, y}), {.batch_size = batch_size});
  options.global_batch_size = 12;
  Accelerator accelerator(options);
  auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
      accelerator.clip_grad_norm(model.parameters(), 0.5);
      optimizer.step();
      optimizer.zero_grad();
    }
  }
  std::vector<float> weights = net.weight().value().to_vector<float>();
  for (const float b : net.bias().value().to_vector<float>()) weights.push_back(b);
  weights.push_back(static_cast<float>(accelerator.window_loss()));
  return weights;
}

}  // namespace

TEST_CASE("train.ranks: any number of ranks trains to the bits of one, also with empty ranks") {
  int count = 0;
  for (const std::int64_t num_samples : {1, 5, 12, 25}) {
    const std::vector<float> alone = train_layer({}, num_samples, 12);
    for (const int size : {2, 3, 4, 7, 8}) {
      for (const std::int64_t b : {1, 2, 5}) {
        const auto all = on_ranks<std::vector<float>>(size, [&](dist::ProcessGroup& group) {
          return train_layer({.process_group = &group}, num_samples, b);
        });
        for (const auto& weights : all) CHECK(weights == alone);
        ++count;
      }
    }
  }
  MESSAGE("ranks train to the bits of one: " << count << " topologies");
}

TEST_CASE("train.ranks: each sample is seen and gathered once in an epoch, whatever their number") {
  int count = 0;
  for (int size = 1; size <= 5; ++size) {
    for (const std::int64_t b : {1, 3}) {
      for (std::int64_t n = 1; n <= 2 * size * b + 1; ++n) {
        CAPTURE(size);
        CAPTURE(b);
        CAPTURE(n);
        const auto seen = on_ranks<std::vector<std::int64_t>>(size, [&](dist::ProcessGroup& group) {
          data::DataLoader batches(data::TensorDataset({Tensor::ones({n, 1}), Tensor::arange(n)}),
                                   {.batch_size = b, .shuffle = true, .seed = 3});
          Accelerator accelerator({.process_group = &group});
          auto loader = accelerator.prepare(batches);
          std::vector<std::int64_t> indices, gathered;
          for (const auto& batch : loader) {
            CHECK(batch.inputs.size(0) == batch.size());
            indices.insert(indices.end(), batch.indices.begin(), batch.indices.end());
            const Tensor rows = accelerator.gather_for_metrics(batch.labels);
            for (const std::int64_t row : rows.to_vector<std::int64_t>()) gathered.push_back(row);
          }
          CHECK(each_once(gathered, n));
          return indices;
        });
        std::vector<std::int64_t> all;
        for (const auto& indices : seen) all.insert(all.end(), indices.begin(), indices.end());
        CHECK(each_once(all, n));
        ++count;
      }
    }
  }
  MESSAGE("each sample is seen and gathered once: " << count << " data sets");
}

TEST_CASE("train.ranks: what is broadcast is marked as its source is, on all ranks") {
  dist::run_ranks(3, [](dist::ProcessGroup& group) {
    const ProcessState ranks(&group);
    Tensor mine = There::ones({2});
    if (group.rank() == 1) mine = mine.with_sample_axis({0, 1});
    CHECK(ranks.broadcast(mine, 1).sample_axis().is_mixed());
    CHECK(ranks.broadcast(mine, 2).sample_axis() == SampleAxis{});
  });
}

TEST_CASE("train.ranks: gather, reduce and broadcast join what ranks hold") {
  const auto sums = on_ranks<std::vector<float>>(3, [](dist::ProcessGroup& group) {
    const ProcessState ranks(&group);
    const Tensor mine = There::full({2}, group.rank() + 1);
    std::vector<float> seen = ranks.gather(mine).to_vector<float>();
    for (const RankReduction reduction :
         {RankReduction::sum, RankReduction::mean, RankReduction::max})
      seen.push_back(ranks.reduce(mine, reduction).to_vector<float>()[0]);
    seen.push_back(ranks.broadcast(mine, 2).to_vector<float>()[1]);
    seen.push_back(static_cast<float>(ranks.gather(There::full({}, group.rank())).numel()));
    return seen;
  });
  for (const auto& seen : sums) CHECK(seen == std::vector<float>{1, 1, 2, 2, 3, 3, 6, 2, 3, 3, 3});

  const auto texts = on_ranks<std::string>(3, [](dist::ProcessGroup& group) {
    const ProcessState ranks(&group);
    std::string all;
    for (const std::string& text : ranks.gather_object(std::string(std::size_t(group.rank()), 'a')))
      all += text + ",";
    return all + ranks.broadcast_object(group.rank() == 1 ? "one" : "other", 1);
  });
  for (const auto& text : texts) CHECK(text == ",a,aa,one");
}

TEST_CASE("train.ranks: what ranks make of samples together is mixed, constants are not") {
  dist::run_ranks(2, [](dist::ProcessGroup& group) {
    const ProcessState ranks(&group);
    const Tensor constant = There::ones({2, 3});
    const auto results = [&](const Tensor& mine) {
      return std::array{ranks.gather(mine),
                        ranks.gather_rows(mine),
                        ranks.reduce(mine),
                        ranks.broadcast(mine),
                        ranks.pad_across_processes(mine, 0)};
    };
    for (const SampleAxis axis : {SampleAxis{0, 1}, SampleAxis::mixed()}) {
      for (const Tensor& result : results(constant.with_sample_axis(axis)))
        CHECK(result.sample_axis().is_mixed());
    }
    for (const Tensor& result : results(constant)) CHECK(result.sample_axis() == SampleAxis{});
  });
}

TEST_CASE("train.ranks: tensors are padded to the longest of all ranks, at either end") {
  const auto padded = on_ranks<std::vector<float>>(3, [](dist::ProcessGroup& group) {
    const ProcessState ranks(&group);
    const Tensor mine = There::ones({1, group.rank() + 1});
    std::vector<float> seen = ranks.pad_across_processes(mine, -1, 9).to_vector<float>();
    for (const float x : ranks.pad_across_processes(mine, 1, 7, true).to_vector<float>())
      seen.push_back(x);
    return seen;
  });
  CHECK(padded[0] == std::vector<float>{1, 9, 9, 7, 7, 1});
  CHECK(padded[1] == std::vector<float>{1, 1, 9, 7, 1, 1});
  CHECK(padded[2] == std::vector<float>{1, 1, 1, 1, 1, 1});
  CHECK_THROWS_WITH_AS(ProcessState().pad_across_processes(There::ones({2}), 1),
                       "[pad_across_processes] dimension must exist, got 1 for shape [2]",
                       IndexError);
}

TEST_CASE("train.ranks: tensors that differ in another size are not padded, on any rank") {
  const auto refusals = on_ranks<std::string>(2, [](dist::ProcessGroup& group) -> std::string {
    const ProcessState ranks(&group);
    try {
      (void)ranks.pad_across_processes(There::ones({3, 3 - group.rank()}), 0);
    } catch (const MismatchError& error) {
      return error.what();
    }
    return "padded";
  });
  for (const std::string& refusal : refusals) {
    CHECK(refusal ==
          "[pad_across_processes] all but one size must agree on all ranks, got [1, 3] float32 "
          "padded in dimension 0 on rank 0 and [1, 2] float32 padded in dimension 0 on rank 1");
  }
}

TEST_CASE("train.ranks: work is split as evenly as it can be, the first ranks have more") {
  const auto parts = on_ranks<std::vector<std::int64_t>>(3, [](dist::ProcessGroup& group) {
    const ProcessState ranks(&group);
    const auto [begin, end] = ranks.split_between_processes(5);
    const auto [none, nobody] = ranks.split_between_processes(2);
    return std::vector<std::int64_t>{begin, end, none, nobody};
  });
  CHECK(parts[0] == std::vector<std::int64_t>{0, 2, 0, 1});
  CHECK(parts[1] == std::vector<std::int64_t>{2, 4, 1, 2});
  CHECK(parts[2] == std::vector<std::int64_t>{4, 5, 2, 2});
}

TEST_CASE("train.ranks: a trigger on one rank is seen once on all") {
  const auto seen = on_ranks<int>(4, [](dist::ProcessGroup& group) {
    ProcessState ranks(&group);
    const bool before = ranks.check_trigger();
    if (group.rank() == 2) ranks.set_trigger();
    const bool raised = ranks.check_trigger();
    return int(before) * 100 + int(raised) * 10 + int(ranks.check_trigger());
  });
  CHECK(seen == std::vector<int>{10, 10, 10, 10});
}

TEST_CASE("train.ranks: the main process goes first") {
  std::atomic<int> arrived = 0;
  const auto order = on_ranks<int>(4, [&](dist::ProcessGroup& group) {
    int place = 0;
    const ProcessState ranks(&group);
    ranks.main_process_first([&] { place = arrived++; });
    CHECK(ranks.is_main_process() == (group.rank() == 0));
    CHECK(ranks.is_last_process() == (group.rank() == 3));
    return place;
  });
  CHECK(order[0] == 0);
}

TEST_CASE("train.ranks: bodies for one process run there alone") {
  std::array<std::atomic<int>, 5> seen = {-1, -1, -1, -1, -1};
  dist::run_ranks(3, [&](dist::ProcessGroup& group) {
    const ProcessState ranks(&group);
    const auto mark = [&](std::size_t place) {
      return [&, place] { seen[place] = seen[place] == -1 ? group.rank() : 100; };
    };
    ranks.on_main_process(mark(0));
    ranks.on_last_process(mark(1));
    ranks.on_process(1, mark(2));
    ranks.on_local_main_process(mark(3));
    ranks.local_main_process_first([&] {
      if (seen[4] == -1) seen[4] = group.rank();
    });
    std::ostringstream printed;
    ranks.print(printed, "loss ", 0.5);
    CHECK(printed.str() == (group.rank() == 0 ? "loss 0.5\n" : ""));
    CHECK_THROWS_WITH_AS(
        ranks.on_process(3, [] {}), "[on_process] the rank must lie in [0, 3), got 3", IndexError);
  });
  const std::vector<int> where = {seen[0], seen[1], seen[2], seen[3], seen[4]};
  CHECK(where == std::vector<int>{0, 2, 1, 0, 0});
}

TEST_CASE("train.ranks: a main process that throws while others are gone keeps its exception") {
  CHECK_THROWS_WITH_AS(
      dist::run_ranks(2,
                      [](dist::ProcessGroup& group) {
                        if (group.rank() == 1) return;
                        const ProcessState ranks(&group);
                        ranks.main_process_first([] { throw ValueError("[test] the body threw"); });
                      }),
      "[test] the body threw",
      ValueError);
}

TEST_CASE("train.ranks: models that differ are refused on all ranks with the same words") {
  const auto errors = test::messages<MismatchError>(3, [](dist::ProcessGroup& group) {
    nn::Linear net(2, group.rank() == 1 ? 4 : 3);
    Accelerator({.process_group = &group}).prepare(net);
  });
  for (const auto& error : errors) {
    CHECK(error ==
          "[prepare] all ranks must have the same model, got weight [3, 2] float32 on rank 0 and "
          "weight [4, 2] float32 on rank 1; build the model alike everywhere");
  }
}

/// A layer with buffers.
struct Counted : nn::Module {
  nn::Linear layer{2, 1};
  Tensor mean, count;
  explicit Counted(std::int64_t size) {
    register_module("layer", layer);
    mean = register_buffer("mean", Tensor::zeros({size}));
    count = register_buffer("count", Tensor::zeros({}, DType::int64));
  }
};

TEST_CASE("train.ranks: buffers begin as rank 0's, and are compared like parameters") {
  const auto seen = on_ranks<std::vector<float>>(3, [](dist::ProcessGroup& group) {
    Counted net(2);
    net.mean.fill(group.rank() + 0.5);
    net.count.fill(7 - group.rank());
    Accelerator accelerator({.process_group = &group});
    accelerator.prepare(net);
    return std::vector<float>{net.mean.to_vector<float>()[1],
                              static_cast<float>(net.count.item<std::int64_t>())};
  });
  for (const auto& values : seen) CHECK(values == std::vector<float>{0.5F, 7});
  const auto errors = test::messages<MismatchError>(3, [](dist::ProcessGroup& group) {
    Counted net(group.rank() == 2 ? 5 : 2);
    Accelerator({.process_group = &group}).prepare(net);
  });
  for (const auto& error : errors) {
    CHECK(error ==
          "[prepare] all ranks must have the same model, got buffer mean [2] float32 on rank 0 and "
          "buffer mean [5] float32 on rank 2; build the model alike everywhere");
  }
}

TEST_CASE("train.ranks: parameters outside the models are refused") {
  const auto errors = on_ranks<std::string>(2, [](dist::ProcessGroup& group) {
    nn::Linear net(1, 1), outside(1, 1);
    data::DataLoader batches(data::TensorDataset({Tensor::ones({4, 1}), Tensor::ones({4, 1})}),
                             {.batch_size = 2});
    Accelerator accelerator({.process_group = &group});
    auto [model, loader] = accelerator.prepare(net, batches);
    outside.to(accelerator.device());
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      try {
        accelerator.backward(nn::mse(outside(model(batch.inputs)), batch.labels));
      } catch (const StateError& error) {
        return std::string(error.what());
      }
    }
    return std::string();
  });
  for (const auto& error : errors) {
    CHECK(error ==
          "[window] with several ranks all parameters must belong to a prepared model, got 2 that "
          "do not; pass their models to prepare()");
  }
}
