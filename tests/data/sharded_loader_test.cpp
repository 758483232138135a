// ShardedLoader: what its passes yield on every rank, its remainder, skipping and epochs.
#include "accrue/data/sharded_loader.h"

#include "accrue/core/error.h"
#include "accrue/data/tensor_dataset.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/golden.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>

using accrue::Tensor;
using accrue::ValueError;
using accrue::data::DataLoader;
using accrue::data::IndexBatch;
using accrue::data::ShardedLoader;
using accrue::data::ShardOptions;
using accrue::data::TensorDataset;
using accrue::test::There;
using nlohmann::json;

namespace {

std::vector<IndexBatch> walk(ShardedLoader loader) {
  std::vector<IndexBatch> batches;
  for (const auto& batch : loader) {
    CHECK(batch.inputs.to_vector<std::int64_t>() == batch.indices);
    batches.push_back(batch.indices);
  }
  return batches;
}

DataLoader indices(std::int64_t count, accrue::data::DataLoaderOptions options) {
  return DataLoader(TensorDataset({There::arange(count)}), std::move(options));
}

}  // namespace

TEST_CASE("data.sharded_loader: passes start later in every golden case of skipping") {
  std::ifstream file(accrue::tests::golden_path("batch_sampler_shard_cases.json"));
  const json golden = json::parse(file);
  int count = 0;
  for (const json& entry : golden["cases"]) {
    if (entry["kind"] != "skip_batches") continue;
    const int size = entry["world_size"];
    for (int rank = 0; rank < size; ++rank) {
      DataLoader loader = indices(entry["dataset_len"], {.batch_size = entry["batch_size"]});
      const ShardedLoader all(loader, {.rank = rank, .world_size = size});
      const ShardedLoader later = skip_first_batches(all, entry["skip"]);
      CHECK(walk(later) ==
            entry["expected"][static_cast<std::size_t>(rank)].get<std::vector<IndexBatch>>());
    }
    ++count;
  }
  CHECK(count == 2);
}

TEST_CASE("data.sharded_loader: the remainder is known at the last batch alone, also after skips") {
  DataLoader loader = indices(22, {.batch_size = 4});
  ShardedLoader shards(loader, {.rank = 1, .world_size = 2});
  CHECK(shards.size() == 3);
  const auto remainders = [](ShardedLoader& walked) {
    std::vector<std::int64_t> seen;
    for ([[maybe_unused]] const auto& batch : walked) seen.push_back(walked.remainder());
    return seen;
  };
  CHECK(remainders(shards) == std::vector<std::int64_t>{0, 0, 6});
  CHECK(shards.remainder() == 0);
  ShardedLoader later = skip_first_batches(shards, 1);
  CHECK(later.size() == 2);
  CHECK(remainders(later) == std::vector<std::int64_t>{0, 6});
  CHECK(skip_first_batches(shards, 9).size() == 0);
  CHECK(skip_first_batches(later, INT64_MAX).size() == 0);
  CHECK_THROWS_WITH_AS(skip_first_batches(shards, -1),
                       "[skip_first_batches] the number of batches must be >= 0, got -1",
                       ValueError);
}

TEST_CASE("data.sharded_loader: one rank gets the batches as they are") {
  DataLoader loader = indices(7, {.batch_size = 2});
  CHECK(walk({loader, {}}) == std::vector<IndexBatch>{{0, 1}, {2, 3}, {4, 5}, {6}});
}

TEST_CASE("data.sharded_loader: epochs advance at the end and shuffle alike on all ranks") {
  std::vector<IndexBatch> epochs(2);
  for (int rank = 0; rank < 2; ++rank) {
    DataLoader loader = indices(8, {.batch_size = 2, .shuffle = true, .seed = 3});
    ShardedLoader shards(loader, {.rank = rank, .world_size = 2});
    for (IndexBatch& epoch : epochs) {
      for (const auto& batch : shards) {
        epoch.insert(epoch.end(), batch.indices.begin(), batch.indices.end());
      }
    }
    CHECK(loader.epoch() == 2);
    for ([[maybe_unused]] const auto& batch : shards) break;
    CHECK(loader.epoch() == 2);
  }
  CHECK(epochs[0] != epochs[1]);
  for (IndexBatch& epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    CHECK(epoch == IndexBatch{0, 1, 2, 3, 4, 5, 6, 7});
  }
}

TEST_CASE("data.sharded_loader: options that do not fit the loader are refused at once") {
  DataLoader loader = indices(8, {.batch_size = 3});
  CHECK_THROWS_AS(ShardedLoader(loader, {.world_size = 2, .split_batches = true}), ValueError);
  CHECK_THROWS_AS(ShardedLoader(loader, {.rank = 2, .world_size = 2}), ValueError);
}
