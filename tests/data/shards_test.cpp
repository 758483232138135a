// Shards against the golden cases of Accelerate, and the errors of options that do not fit.
#include "accrue/data/shards.h"

#include "accrue/core/error.h"
#include "accrue/data/stream_loader.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/golden.h"

#include <nlohmann/json.hpp>

#include <fstream>
#include <map>
#include <numeric>
#include <string>

using accrue::ValueError;
using accrue::data::IndexBatch;
using accrue::data::RoundReader;
using accrue::data::ShardOptions;
using accrue::data::StreamLoader;
using accrue::data::StreamShard;
using accrue::test::There;
using nlohmann::json;

namespace {

json golden_cases() {
  std::ifstream file(accrue::tests::golden_path("batch_sampler_shard_cases.json"));
  return json::parse(file)["cases"];
}

ShardOptions options_of(const json& entry) {
  ShardOptions options{.world_size = entry["world_size"],
                       .split_batches = entry["split_batches"],
                       .even_batches = entry.value("even_batches", true),
                       .drop_last = entry["drop_last"]};
  if (!entry["batch_size"].is_null()) options.batch_size = entry["batch_size"];
  return options;
}

IndexBatch order_of(const json& entry) {
  IndexBatch order(entry["dataset_len"].get<std::size_t>());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<IndexBatch> batches_of(const json& entry) {
  if (entry.contains("batches")) return entry["batches"];
  return accrue::data::cut_batches(order_of(entry), entry["batch_size"], entry["drop_last"]);
}

/// The numbers 0, 1, ... as a stream.
struct Indices : accrue::data::IterableDataset {
  std::int64_t count;
  explicit Indices(std::int64_t number) : count(number) {}

  struct Walk : accrue::data::SampleStream {
    std::int64_t next_number = 0, end;
    explicit Walk(std::int64_t count) : end(count) {}
    std::optional<accrue::data::Sample> next() override {
      if (next_number == end) return std::nullopt;
      return accrue::data::Sample{
          {There::full({}, static_cast<double>(next_number++), accrue::DType::int64)}};
    }
  };
  std::unique_ptr<accrue::data::SampleStream> open(std::int64_t) const override {
    return std::make_unique<Walk>(count);
  }
};

accrue::data::DataLoaderOptions loader_options(const json& entry) {
  return {.batch_size = entry["batch_size"], .drop_last = entry["drop_last"]};
}

/// Calls check(entry, options) for every rank of the cases of a kind; returns the number of cases.
template <class Check>
int for_each_rank(const std::string& kind, const Check& check) {
  int count = 0;
  for (const json& entry : golden_cases()) {
    if (entry["kind"] != kind) continue;
    ShardOptions options = options_of(entry);
    CAPTURE(entry["id"].get<std::string>());
    for (; options.rank < options.world_size; ++options.rank) check(entry, options);
    ++count;
  }
  MESSAGE(kind << ": " << count << " golden cases");
  return count;
}

/// Upstream's length is an estimate; where the golden file says that it is wrong, we do not follow.
void check_length(const json& entry, int rank, std::size_t length) {
  const std::size_t reported = entry["reported_len"][static_cast<std::size_t>(rank)];
  if (reported == length) return;
  const std::string note = entry.value("note", "");
  CHECK(note.find("reported_len") != std::string::npos);
  MESSAGE(entry["id"].get<std::string>()
          << " rank " << rank << ": length " << length << ", the reported " << reported
          << " does not apply: " << note);
}

}  // namespace

TEST_CASE("data.shards: batches are dealt as Accelerate deals them in every golden case") {
  const auto check = [](const json& entry, const ShardOptions& options) {
    const auto shard = accrue::data::batch_sampler_shard(batches_of(entry), options);
    const json& expected = entry["expected"][static_cast<std::size_t>(options.rank)];
    CHECK(shard == expected.get<std::vector<IndexBatch>>());
    check_length(entry, options.rank, shard.size());
    if (entry.contains("remainder")) {
      CHECK(accrue::data::shard_remainder(entry["dataset_len"], options) == entry["remainder"]);
    }
  };
  CHECK(for_each_rank("batch_sampler_shard", check) == 82);
  CHECK(for_each_rank("batch_sampler_shard_dynamic", check) == 8);
}

TEST_CASE("data.shards: streams are dealt as Accelerate deals them in every golden case") {
  const auto check = [](const json& entry, const ShardOptions& options) {
    StreamLoader loader(Indices{entry["dataset_len"]}, loader_options(entry));
    StreamShard shard(loader, options);
    IndexBatch samples;
    while (const auto dealt = shard.next()) {
      CHECK(dealt->batch.inputs.to_vector<std::int64_t>() == dealt->batch.indices);
      samples.insert(samples.end(), dealt->batch.indices.begin(), dealt->batch.indices.end());
    }
    CHECK(samples == entry["expected_samples"][static_cast<std::size_t>(options.rank)]);
    check_length(entry, options.rank, samples.size());
    CHECK(loader.epoch() == 1);
  };
  CHECK(for_each_rank("iterable_dataset_shard", check) == 12);
}

TEST_CASE("data.shards: rank 0 hands out what Accelerate's dispatcher does in every golden case") {
  const auto check = [](const json& entry, const ShardOptions& options) {
    const StreamLoader loader(Indices{entry["dataset_len"]}, loader_options(entry));
    RoundReader rounds(loader.open(), options, accrue::data::ShortRound::even);
    std::vector<IndexBatch> batches;
    while (const auto round = rounds.next()) {
      IndexBatch& batch = batches.emplace_back();
      const std::size_t each = round->samples.size() / static_cast<std::size_t>(options.world_size);
      for (std::size_t i = 0; i < each; ++i)
        batch.push_back(round->samples[static_cast<std::size_t>(options.rank) * each + i].index);
      if (round->is_last) CHECK(round->num_real == entry["remainder"]);
    }
    const json& expected = entry["expected"][static_cast<std::size_t>(options.rank)];
    CHECK(batches == expected.get<std::vector<IndexBatch>>());
  };
  CHECK(for_each_rank("dispatcher", check) == 13);
}

TEST_CASE("data.shards: a stream's end and remainder are known at its last batch, whoever reads") {
  const auto dealt = [](std::int64_t count, std::int64_t batch_size, bool drop_last, int size) {
    StreamLoader loader(Indices(count), {.batch_size = batch_size, .drop_last = drop_last});
    StreamShard shard(loader, {.rank = size - 1, .world_size = size});
    std::string seen;
    while (const auto next = shard.next())
      seen += accrue::text(next->batch.size(), next->is_last ? "!" : "", next->remainder, " ");
    return seen;
  };
  CHECK(dealt(7, 2, false, 1) == "20 20 20 1!1 ");
  CHECK(dealt(7, 2, true, 1) == "20 20 2!2 ");
  CHECK(dealt(7, 2, false, 2) == "20 2!3 ");
  CHECK(dealt(8, 2, false, 2) == "20 2!4 ");
  CHECK(dealt(7, 2, true, 2) == "2!4 ");
  CHECK(dealt(1, 2, false, 4) == "2!1 ");
  CHECK(dealt(0, 2, false, 4).empty());
  CHECK(dealt(3, 2, true, 2).empty());
}

TEST_CASE("data.shards: stream loaders refuse what a stream cannot do") {
  CHECK_THROWS_WITH_AS(StreamLoader(Indices(1), {.shuffle = true}),
                       "[stream_loader] a stream has its own order, got shuffle = true; shuffle in "
                       "the data set",
                       ValueError);
  CHECK_THROWS_AS(StreamLoader(Indices(1), {.batch_size = 0}), ValueError);
  CHECK_THROWS_AS(StreamLoader(nullptr), ValueError);
  StreamLoader loader(Indices(4), {.batch_size = 3});
  CHECK_THROWS_AS(loader.set_epoch(-1), ValueError);
  CHECK_THROWS_AS(loader.set_epoch(INT64_MAX), ValueError);
  CHECK_THROWS_WITH_AS(StreamShard(loader, {.world_size = 2, .split_batches = true}),
                       "[rounds] batch_size must be a multiple of the number of ranks, got 3 for 2 "
                       "ranks; change it or leave out split_batches",
                       ValueError);
  CHECK_THROWS_WITH_AS(RoundReader(loader.open(), {}, accrue::data::ShortRound::fill),
                       "[rounds] batch_size must be given, got none",
                       ValueError);
}

TEST_CASE("data.shards: every golden error is a ValueError") {
  const auto check = [](const json& entry, const ShardOptions& options) {
    CHECK_THROWS_AS(accrue::data::batch_sampler_shard(batches_of(entry), options), ValueError);
  };
  CHECK(for_each_rank("error", check) == 2);
}

TEST_CASE("data.shards: every kind of golden case has a test") {
  std::map<std::string, std::string> home = {{"batch_sampler_shard", "data.shards"},
                                             {"batch_sampler_shard_dynamic", "data.shards"},
                                             {"iterable_dataset_shard", "data.shards"},
                                             {"dispatcher", "data.shards"},
                                             {"error", "data.shards"},
                                             {"skip_batches", "data.sharded_loader"},
                                             {"split_between_processes", "train.shards"},
                                             {"end_of_dataloader", "train.compat"},
                                             {"sync_gradients", "train.compat"}};
  std::map<std::string, int> counts;
  for (const json& entry : golden_cases()) ++counts[entry["kind"]];
  int total = 0;
  for (const auto& [kind, count] : counts) {
    REQUIRE(home.contains(kind));
    MESSAGE(kind << ": " << count << " cases, tested by " << home[kind]);
    total += count;
  }
  CHECK(total == 147);
}

TEST_CASE("data.shards: options and batches that do not fit are refused") {
  const auto deal = [](std::vector<IndexBatch> batches, const ShardOptions& options) {
    return accrue::data::batch_sampler_shard(batches, options);
  };
  CHECK_THROWS_WITH_AS(deal({}, {.rank = 2, .world_size = 2}),
                       "[batch_sampler_shard] the rank must lie in [0, 2), got 2",
                       ValueError);
  CHECK_THROWS_WITH_AS(deal({}, {.batch_size = 0}),
                       "[batch_sampler_shard] batch_size must be >= 1, got 0",
                       ValueError);
  CHECK_THROWS_WITH_AS(deal({}, {.world_size = 2, .batch_size = 3, .split_batches = true}),
                       "[batch_sampler_shard] batch_size must be a multiple of the number of "
                       "ranks, got 3 for 2 ranks; change it or leave out split_batches",
                       ValueError);
  CHECK_THROWS_WITH_AS(deal({}, {.split_batches = true}),
                       "[batch_sampler_shard] batches to split must have the same size, got no "
                       "batch_size; give it or leave out split_batches",
                       ValueError);
  CHECK_THROWS_WITH_AS(deal({{0}, {1, 2}}, {.batch_size = 2}),
                       "[batch_sampler_shard] batches must be full and the last not empty, got 1 "
                       "samples in batch 0",
                       ValueError);
  CHECK_THROWS_AS(deal({{0}, {}}, {}), ValueError);
  CHECK_THROWS_AS(deal({{0, 1, 2}}, {.batch_size = 2}), ValueError);
  CHECK_THROWS_WITH_AS(
      accrue::data::cut_batches({}, 0), "[cut_batches] batch_size must be >= 1, got 0", ValueError);
}
