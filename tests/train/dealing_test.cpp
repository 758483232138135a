// Loaders dealt as upstream, on real ranks: rank 0 hands out batches, streams, what is refused.
#include "accrue/accrue.h"
#include "accrue/dist/dist.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/golden_cases.h"

#include <nlohmann/json.hpp>

#include <map>
#include <mutex>
#include <numeric>

using namespace accrue;
using accrue::test::There;
using data::IndexBatch;
using nlohmann::json;
using train::Accelerator;
using train::DataLoaderConfiguration;

namespace {

/// Sequences 0, 1, ... of growing length and their numbers, as a stream; throws at `fault`.
struct Sequences : data::IterableDataset {
  std::int64_t count, fault;
  explicit Sequences(std::int64_t number, std::int64_t fault_at = -1)
      : count(number), fault(fault_at) {}

  struct Walk : data::SampleStream {
    std::int64_t i = 0, end, fault;
    Walk(std::int64_t count, std::int64_t fault_at) : end(count), fault(fault_at) {}
    std::optional<data::Sample> next() override {
      if (i == end) return std::nullopt;
      if (i == fault) throw ValueError("[test] sample " + std::to_string(i) + " is broken");
      data::Sample sample{{Tensor::full({1 + i % 3}, static_cast<double>(i)),
                           Tensor::full({}, static_cast<double>(i), DType::int64)}};
      ++i;
      return sample;
    }
  };
  std::unique_ptr<data::SampleStream> open(std::int64_t) const override {
    return std::make_unique<Walk>(count, fault);
  }
};

struct Seen {
  std::vector<IndexBatch> batches;
  IndexBatch gathered;
};

template <class LoaderType>
Seen walk(dist::ProcessGroup& group, LoaderType& batches, const DataLoaderConfiguration& config) {
  Accelerator accelerator({.process_group = &group});
  auto loader = accelerator.prepare_data_loader(batches, config);
  Seen seen;
  for (const auto& batch : loader) {
    CHECK(batch.labels.template to_vector<std::int64_t>() == batch.indices);
    CHECK(batch.inputs.sample_axis() == SampleAxis{0, 1});
    for (std::int64_t i = 0; i < batch.size(); ++i)
      CHECK(batch.inputs[i][0].template item<float>() ==
            static_cast<float>(batch.indices[static_cast<std::size_t>(i)]));
    seen.batches.push_back(batch.indices);
    const Tensor rows = accelerator.gather_for_metrics(batch.labels);
    for (const std::int64_t row : rows.template to_vector<std::int64_t>())
      seen.gathered.push_back(row);
  }
  CHECK(batches.epoch() == 1);
  return seen;
}

IndexBatch first(std::int64_t count) {
  IndexBatch numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace

TEST_CASE("train.dealing: rank 0 hands out tensors in every golden case, also of streams") {
  int count = 0;
  for (const json& entry : tests::golden_cases("dispatcher")) {
    const std::int64_t n = entry["dataset_len"], b = entry["batch_size"];
    const bool drop = entry["drop_last"], split = entry["split_batches"];
    const std::int64_t round = split ? b : b * entry["world_size"].get<std::int64_t>();
    dist::run_ranks(entry["world_size"], [&](dist::ProcessGroup& group) {
      CAPTURE(entry["id"].get<std::string>());
      const auto expected =
          entry["expected"][static_cast<std::size_t>(group.rank())].get<std::vector<IndexBatch>>();
      data::StreamLoader stream(
          Sequences(n), {.batch_size = b, .drop_last = drop, .collate = data::PadCollate()});
      const Seen of_stream = walk(group, stream, {.split_batches = split});
      CHECK(of_stream.batches == expected);
      CHECK(of_stream.gathered == first(drop ? n / round * round : n));

      const Tensor numbers = Tensor::arange(n);
      data::DataLoader loader(
          data::TensorDataset({numbers.to(DType::float32).reshape({n, 1}), numbers}),
          {.batch_size = b, .drop_last = drop});
      const DataLoaderConfiguration config{.split_batches = split, .dispatch_batches = true};
      CHECK(Accelerator({.process_group = &group}).prepare_data_loader(loader, config).size() ==
            std::ssize(expected));
      const Seen of_loader = walk(group, loader, config);
      CHECK(of_loader.batches == expected);
      CHECK(of_loader.gathered == of_stream.gathered);
    });
    ++count;
  }
  CHECK(count == 13);
}

TEST_CASE("train.dealing: streams that each rank walks are gathered without duplicates") {
  int count = 0;
  for (const json& entry : tests::golden_cases("iterable_dataset_shard")) {
    const std::int64_t n = entry["dataset_len"], b = entry["batch_size"];
    const std::int64_t size = entry["world_size"];
    const bool drop = entry["drop_last"], split = entry["split_batches"];
    const std::int64_t round = split ? b : b * size;
    dist::run_ranks(static_cast<int>(size), [&](dist::ProcessGroup& group) {
      CAPTURE(entry["id"].get<std::string>());
      data::StreamLoader stream(
          Sequences(n), {.batch_size = b, .drop_last = drop, .collate = data::PadCollate()});
      const Seen seen = walk(group, stream, {.split_batches = split, .dispatch_batches = false});
      IndexBatch mine;
      for (const IndexBatch& batch : seen.batches)
        mine.insert(mine.end(), batch.begin(), batch.end());
      CHECK(mine == entry["expected_samples"][static_cast<std::size_t>(group.rank())]);
      CHECK(seen.gathered == first(drop ? n / round * round : n));
    });
    ++count;
  }
  CHECK(count == 12);
}

TEST_CASE(
    "train.dealing: fields are cut along their samples, scalars go to all, none is no batch") {
  dist::run_ranks(3, [](dist::ProcessGroup& group) {
    const auto columns = [](std::span<const data::Sample> samples) {
      std::vector<float> numbers;
      for (const data::Sample& sample : samples)
        numbers.push_back(static_cast<float>(sample.index));
      const std::int64_t n = std::ssize(samples);
      return std::vector<Tensor>{Tensor::from(numbers, {1, n}).with_sample_axis({1, 1}),
                                 Tensor::full({}, 7),
                                 Tensor::from(numbers, {n})};
    };
    data::StreamLoader stream(Sequences(5), {.batch_size = 1, .collate = columns});
    Accelerator accelerator({.process_group = &group});
    auto loader = accelerator.prepare_data_loader(stream);
    std::vector<float> seen;
    for (const auto& batch : loader) {
      CHECK(batch.inputs.sample_axis() == SampleAxis{1, 1});
      CHECK(batch.labels.item<float>() == 7);
      CHECK(batch.others[0].to_vector<float>() == batch.inputs.to_vector<float>());
      seen.push_back(batch.inputs.item<float>());
    }
    const auto mine = static_cast<float>(group.rank());
    CHECK(seen == std::vector<float>{mine, group.rank() == 2 ? 0 : mine + 3});

    data::StreamLoader none(Sequences(0));
    for ([[maybe_unused]] const auto& batch : accelerator.prepare_data_loader(none)) CHECK(false);
    CHECK(none.epoch() == 1);
  });
}

TEST_CASE("train.dealing: where rank 0 cannot read, the others name it and none hangs") {
  std::mutex mutex;
  std::map<int, std::string> errors;
  CHECK_THROWS_WITH_AS(dist::run_ranks(3,
                                       [&](dist::ProcessGroup& group) {
                                         data::StreamLoader stream(Sequences(9, 5));
                                         try {
                                           walk(group, stream, {});
                                         } catch (const std::exception& error) {
                                           const std::lock_guard lock(mutex);
                                           errors[group.rank()] = error.what();
                                           throw;
                                         }
                                       }),
                       "[test] sample 5 is broken",
                       ValueError);
  REQUIRE(errors.size() == 3);
  CHECK(errors[2].find("rank 0") != std::string::npos);
}

TEST_CASE("train.dealing: a compat trainer walks streams, windows refuse what they cannot deal") {
  data::StreamLoader stream(Sequences(3), {.collate = data::PadCollate()});
  Accelerator compat({.gradient_accumulation_steps = 2, .compat = train::Compat::accelerate()});
  std::string syncs;
  for ([[maybe_unused]] const auto& batch : compat.prepare(stream)) {
    auto scope = compat.accumulate();
    syncs += compat.sync_gradients() ? 'T' : '.';
  }
  CHECK(syncs == ".TT");

  Accelerator windows;
  CHECK_THROWS_WITH_AS(windows.prepare(stream),
                       "[prepare] windows need a number of samples, got a stream; use "
                       "prepare_data_loader() for evaluation, or invariant = false",
                       ValueError);
  auto loader = windows.prepare_data_loader(stream);
  CHECK_THROWS_AS((void)loader.size(), StateError);
  CHECK_THROWS_AS((void)loader.plan(), StateError);
  for ([[maybe_unused]] const auto& batch : loader) {
    CHECK_THROWS_WITH_AS(
        windows.accumulate(),
        "[accumulate] windows deal each sample once, got a loader that is dealt as "
        "upstream; it is for evaluation, or use invariant = false",
        StateError);
  }
  CHECK_THROWS_WITH_AS(Accelerator({.dataloader_config = DataLoaderConfiguration()}),
                       "[accelerator] windows deal batches in their own way, got a "
                       "dataloader_config; use Compat::accelerate(), or prepare_data_loader() for "
                       "evaluation",
                       ValueError);
  dist::run_ranks(2, [](dist::ProcessGroup& group) {
    data::DataLoader odd(data::TensorDataset({Tensor::arange(6)}), {.batch_size = 3});
    Accelerator accelerator({.process_group = &group});
    CHECK_THROWS_AS((void)accelerator.prepare_data_loader(odd, {.split_batches = true}),
                    ValueError);
  });
}

TEST_CASE("train.dealing: passes start later, whoever deals, and still know what to drop") {
  int count = 0;
  for (const json& entry : tests::golden_cases("skip_batches")) {
    const std::int64_t n = entry["dataset_len"], b = entry["batch_size"], skip = entry["skip"];
    const std::int64_t size = entry["world_size"];
    dist::run_ranks(static_cast<int>(size), [&](dist::ProcessGroup& group) {
      data::DataLoader batches(data::TensorDataset({Tensor::arange(n)}), {.batch_size = b});
      data::StreamLoader stream(Sequences(n), {.batch_size = b, .collate = data::PadCollate()});
      Accelerator accelerator({.process_group = &group});
      const auto rest = [&](const train::Loader& loader, std::vector<IndexBatch>& mine) {
        std::int64_t kept = 0;
        for (const auto& batch : skip_first_batches(loader, skip)) {
          mine.push_back(batch.indices);
          kept += accelerator.gather_for_metrics(There::ones({batch.size()})).size(0);
        }
        CHECK(kept == n - skip * size * b);
      };
      std::vector<IndexBatch> sharded, dispatched, walked;
      rest(accelerator.prepare_data_loader(batches), sharded);
      CHECK(
          sharded ==
          entry["expected"][static_cast<std::size_t>(group.rank())].get<std::vector<IndexBatch>>());
      rest(accelerator.prepare_data_loader(batches, {.dispatch_batches = true}), dispatched);
      rest(accelerator.prepare_data_loader(stream), walked);
      CHECK(walked == dispatched);
      CHECK(skip_first_batches(accelerator.prepare_data_loader(batches), skip).size() ==
            std::ssize(sharded));
    });
    ++count;
  }
  CHECK(count == 2);
}

TEST_CASE("train.dealing: a window plan starts later at any window's begin, and nowhere else") {
  for (const int size : {1, 3}) {
    dist::run_ranks(size, [](dist::ProcessGroup& group) {
      data::DataLoader batches(data::TensorDataset({Tensor::arange(27)}),
                               {.batch_size = 2, .shuffle = true, .seed = 1});
      Accelerator accelerator({.global_batch_size = 8, .process_group = &group});
      auto loader = accelerator.prepare(batches);
      std::vector<IndexBatch> all;
      for (const auto& batch : loader) all.push_back(batch.indices);
      const std::int64_t steps = loader.plan().steps_in_window(0);
      CHECK(skip_first_batches(skip_first_batches(loader, steps), INT64_MAX).size() == 0);
      for (std::int64_t skip = 0; skip <= std::ssize(all) + 1; ++skip) {
        CAPTURE(skip);
        if (skip % steps != 0 && skip < std::ssize(all)) {
          CHECK_THROWS_AS((void)skip_first_batches(loader, skip), ValueError);
          continue;
        }
        batches.set_epoch(0);
        const train::Loader later = skip_first_batches(loader, skip);
        std::vector<IndexBatch> rest(all.begin(), all.begin() + std::min(skip, std::ssize(all)));
        CHECK(later.size() == std::ssize(all) - std::ssize(rest));
        for (const auto& batch : later) rest.push_back(batch.indices);
        CHECK(rest == all);
        CHECK(batches.epoch() == 1);
      }
      CHECK_THROWS_AS((void)skip_first_batches(loader, -1), ValueError);
    });
  }
}

TEST_CASE("train.dealing: rows of one sample stay together, rows of another kind are named") {
  dist::run_ranks(2, [](dist::ProcessGroup& group) {
    data::DataLoader batches(data::TensorDataset({Tensor::arange(5)}), {.batch_size = 2});
    Accelerator accelerator({.process_group = &group});
    std::int64_t rows = 0, losses = 0;
    for (const auto& batch : accelerator.prepare_data_loader(batches)) {
      rows += accelerator.gather_for_metrics(There::ones({3 * batch.size(), 2})).size(0);
      losses += accelerator.gather_for_metrics(There::ones({1})).size(0);
    }
    CHECK(rows == 15);
    CHECK(losses == 4);
    CHECK(accelerator.gather_rows(There::ones({group.rank(), 2})).shape() == Shape({1, 2}));
    CHECK_THROWS_WITH_AS(
        (void)accelerator.gather_rows(There::ones({1, 2 + group.rank()})),
        "[gather_rows] all but one size must agree on all ranks, got [1, 2] float32 on rank "
        "0 and [1, 3] float32 on rank 1",
        MismatchError);
    CHECK_THROWS_AS((void)accelerator.gather_rows(There::ones({})), ShapeError);
  });
}
