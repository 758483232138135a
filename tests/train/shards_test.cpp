// Accelerate's sharding on real ranks, as threads: gathered batches without duplicates, split work.
#include "accrue/accrue.h"
#include "accrue/dist/dist.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/golden_cases.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

using namespace accrue;
using accrue::test::There;
using data::IndexBatch;
using nlohmann::json;
using train::ProcessState;

namespace {

data::DataLoader loader_of(const json& entry) {
  return data::DataLoader(
      data::TensorDataset({Tensor::arange(entry["dataset_len"].get<std::int64_t>())}),
      {.batch_size = entry["batch_size"], .drop_last = entry["drop_last"]});
}

/// Ranks gather where all have the same number of batches, of whatever size.
bool is_even(const json& expected) {
  return std::all_of(expected.begin(), expected.end(), [&](const json& shard) {
    return shard.size() == expected[0].size();
  });
}

/// What every rank has after one epoch of gather_for_metrics(): each sample once, in order.
IndexBatch samples_once(const json& entry) {
  std::int64_t count = entry["dataset_len"];
  if (entry["drop_last"]) count -= count % entry["total_batch_size"].get<std::int64_t>();
  IndexBatch samples(static_cast<std::size_t>(count));
  std::iota(samples.begin(), samples.end(), 0);
  return samples;
}

/// Why a case has no ranks here; null if it has.
const char* reason_to_leave_out(const json& entry) {
  if (entry["world_size"] == 1) return "one process is not sharded";
  const bool drops_all = entry["drop_last"] && entry["dataset_len"] < entry["batch_size"];
  return drops_all ? "DataLoader refuses to drop the only batch" : nullptr;
}

/// One epoch of one rank. What ranks gather holds every sample once.
void check_rank(const json& entry, dist::ProcessGroup& group, bool gathers) {
  train::Accelerator accelerator(
      {.compat = train::Compat::accelerate(),
       .dataloader_config = train::DataLoaderConfiguration{.split_batches = entry["split_batches"],
                                                           .even_batches = entry["even_batches"]},
       .process_group = &group});
  data::DataLoader batches = loader_of(entry);
  auto loader = accelerator.prepare(batches);
  std::vector<IndexBatch> mine;
  IndexBatch all;
  for (const auto& batch : loader) {
    mine.push_back(batch.indices);
    if (!gathers) continue;
    const Tensor rows = accelerator.gather_for_metrics(batch.inputs);
    for (const std::int64_t row : rows.to_vector<std::int64_t>()) all.push_back(row);
  }
  const json& expected = entry["expected"][static_cast<std::size_t>(group.rank())];
  CHECK_MESSAGE(mine == expected.get<std::vector<IndexBatch>>(), entry["id"].get<std::string>());
  CHECK(loader.size() == std::ssize(mine));
  CHECK(batches.epoch() == 1);
  if (gathers) CHECK_MESSAGE(all == samples_once(entry), entry["id"].get<std::string>());
}

}  // namespace

TEST_CASE("train.shards: golden cases pass on real ranks, and metrics see every sample once") {
  int dealt = 0, gathered = 0, left_out = 0;
  for (const json& entry : tests::golden_cases("batch_sampler_shard")) {
    const std::string id = entry["id"];
    if (const char* reason = reason_to_leave_out(entry)) {
      MESSAGE(id << " has no ranks here: " << std::string(reason));
      ++left_out;
      continue;
    }
    const bool gathers = is_even(entry["expected"]);
    if (!gathers)
      MESSAGE(id << " is dealt but not gathered: the ranks differ in their number of batches");
    dist::run_ranks(entry["world_size"],
                    [&](dist::ProcessGroup& group) { check_rank(entry, group, gathers); });
    ++dealt;
    gathered += gathers;
  }
  MESSAGE("dealt " << dealt << " golden cases, gathered " << gathered << ", left out " << left_out);
  CHECK(dealt == 75);
  CHECK(gathered == 59);
  CHECK(dealt + left_out == 82);
}

TEST_CASE("train.shards: a remainder keeps the first rows, none keeps all") {
  const ProcessState alone;
  const Tensor rows = There::arange(6).reshape({3, 2});
  CHECK(alone.gather_for_metrics(rows, 2).shape() == Shape({2, 2}));
  for (const int remainder : {-1, 0, 3, 9}) {
    CHECK(alone.gather_for_metrics(rows, remainder).shape() == Shape({3, 2}));
  }
  CHECK(alone.gather_for_metrics(There::full({}, 5), 1).rank() == 0);
}

TEST_CASE("train.shards: work is split as Accelerate splits it in every golden case") {
  int count = 0;
  for (const json& entry : tests::golden_cases("split_between_processes")) {
    dist::run_ranks(entry["world_size"], [&](dist::ProcessGroup& group) {
      const ProcessState ranks(&group);
      const Tensor all = There::arange(entry["length"].get<std::int64_t>());
      const auto rank = static_cast<std::size_t>(group.rank());
      for (const bool pad : {false, true}) {
        CHECK_MESSAGE(ranks.split_between_processes(all, pad).to_vector<std::int64_t>() ==
                          entry[pad ? "expected_padded" : "expected"][rank].get<IndexBatch>(),
                      entry["id"].get<std::string>());
      }
    });
    ++count;
  }
  CHECK(count == 7);
  CHECK_THROWS_WITH_AS(ProcessState().split_between_processes(There::full({}, 1)),
                       "[split_between_processes] a tensor must have rows, got shape []",
                       ShapeError);
}
