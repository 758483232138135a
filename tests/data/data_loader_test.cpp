// DataLoader: orders of epochs, batches, and faults of options and data sets.
#include "accrue/data/data_loader.h"

#include "accrue/core/error.h"
#include "accrue/core/generator.h"
#include "accrue/data/tensor_dataset.h"
#include "accrue/data/window_plan.h"
#include "accrue/tests/data/counting.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <algorithm>
#include <numeric>
#include <vector>

using namespace accrue;
using accrue::data::Batch;
using accrue::data::DataLoader;
using accrue::data::DataLoaderOptions;
using accrue::data::PadCollate;
using accrue::data::Sample;
using accrue::data::TensorDataset;
using accrue::test::There;
using namespace accrue::data::testing;

namespace {

struct OutOfMemory : data::Dataset {
  std::int64_t size() const override { return 1; }
  Sample get(std::int64_t) const override { throw OutOfMemoryError("no bytes left"); }
};

}  // namespace

// ---- orders ----

TEST_CASE("data.data_loader: shuffled orders are those of a seeded torch sampler") {
  const DataLoader ten(counting(10), {.shuffle = true, .seed = 42});
  CHECK(ten.order(0) == Indices{2, 6, 1, 8, 4, 5, 0, 9, 3, 7});
  CHECK(ten.order(1) == Indices{8, 4, 9, 0, 5, 1, 6, 7, 2, 3});
  CHECK(ten.order(2) == Indices{2, 6, 3, 8, 7, 9, 1, 4, 5, 0});
  const DataLoader eight(counting(8), {.shuffle = true, .seed = 42});
  CHECK(eight.order(0) == Indices{6, 3, 0, 7, 2, 1, 4, 5});
  CHECK(eight.order(1) == Indices{4, 5, 7, 1, 3, 2, 6, 0});
  CHECK(eight.order(2) == Indices{4, 7, 3, 2, 1, 5, 6, 0});
}

TEST_CASE("data.data_loader: without shuffle every epoch is in order") {
  const DataLoader loader(counting(4));
  CHECK(loader.order(0) == Indices{0, 1, 2, 3});
  CHECK(loader.order(7) == loader.order(0));
}

TEST_CASE("data.data_loader: the default seed is that of the thread's generator") {
  manual_seed(42);
  const DataLoader loader(counting(10), {.shuffle = true});
  manual_seed(43);
  CHECK(loader.options().seed == 42);
  CHECK(loader.order(0) == Indices{2, 6, 1, 8, 4, 5, 0, 9, 3, 7});
  manual_seed(Generator::kDefaultSeed);
}

// ---- batches ----

TEST_CASE("data.data_loader: batches hold inputs, labels and indices with a sample axis") {
  DataLoader loader(counting(5), {.batch_size = 2});
  CHECK(loader.size() == 3);
  std::vector<Batch> batches;
  for (const Batch& batch : loader) batches.push_back(batch);
  REQUIRE(batches.size() == 3);
  CHECK(equal_bits(batches[1].inputs, There::of<float>({{2, 20}, {3, 30}})));
  CHECK(equal_bits(batches[1].labels, There::of<std::int64_t>({-2, -3})));
  CHECK(batches[1].inputs.sample_axis() == SampleAxis{0, 1});
  CHECK(batches[1].labels.sample_axis() == SampleAxis{0, 1});
  CHECK(batches[2].indices == Indices{4});
  CHECK(batches[2].size() == 1);
}

TEST_CASE("data.data_loader: fields from the third on are others, one field has no labels") {
  const Tensor x = There::of<float>({1, 2});
  const DataLoader four(TensorDataset({x, x, x, There::of<float>({3, 4})}));
  const Indices second{1};
  REQUIRE(four.load(second).others.size() == 2);
  CHECK(four.load(second).others[1].item<float>() == 4);
  const DataLoader one((TensorDataset({x})));
  CHECK_FALSE(one.load(second).labels.defined());
}

TEST_CASE("data.data_loader: load follows any indices, also repeated ones") {
  const DataLoader loader(counting(5), {.batch_size = 2});
  const Batch batch = loader.load(Indices{4, 0, 4});
  CHECK(equal_bits(batch.labels, There::of<std::int64_t>({-4, 0, -4})));
  CHECK(batch.indices == Indices{4, 0, 4});
}

TEST_CASE("data.data_loader: an empty batch has the shapes, dtypes and axis of a full one") {
  const DataLoader loader(counting(5));
  const Batch batch = loader.load({});
  CHECK(batch.size() == 0);
  CHECK(batch.inputs.shape() == Shape{0, 2});
  CHECK(batch.labels.shape() == Shape{0});
  CHECK(batch.labels.dtype() == DType::int64);
  CHECK(batch.inputs.sample_axis() == SampleAxis{0, 1});
}

TEST_CASE("data.data_loader: an empty batch is empty where its sample axis lies") {
  const auto time_first = [](std::span<const Sample> samples) {
    std::vector<Tensor> sequences;
    for (const Sample& sample : samples) sequences.push_back(sample.fields[0]);
    return std::vector<Tensor>{data::pad_sequence(sequences, 0, false)};
  };
  const DataLoader loader(counting(3), {.collate = time_first});
  CHECK(loader.load({}).inputs.shape() == Shape{2, 0});
}

TEST_CASE("data.data_loader: a collate of the user's choice makes the batches") {
  struct Words : data::Dataset {
    std::int64_t size() const override { return 4; }
    Sample get(std::int64_t index) const override {
      const Tensor tokens = There::arange(index + 1);
      return {{tokens, tokens}};
    }
  };
  DataLoader loader(Words(), {.batch_size = 2, .collate = PadCollate{}});
  auto it = loader.begin();
  CHECK(equal_bits(it->labels, There::of<std::int64_t>({{0, -100}, {0, 1}})));
  CHECK(loader.load({}).inputs.shape() == Shape{0, 1});
}

TEST_CASE("data.data_loader: short batches are kept or dropped") {
  struct Row {
    std::int64_t n, b;
    bool drop_last;
    std::int64_t size;
  };
  for (const Row& row : {Row{10, 4, false, 3},
                         Row{10, 4, true, 2},
                         Row{8, 4, true, 2},
                         Row{3, 5, false, 1},
                         Row{3, std::int64_t{1} << 40, false, 1},
                         Row{0, 4, false, 0},
                         Row{0, 4, true, 0}}) {
    CAPTURE(row.n);
    CAPTURE(row.b);
    DataLoader loader(counting(row.n), {.batch_size = row.b, .drop_last = row.drop_last});
    CHECK(loader.size() == row.size);
    CHECK(static_cast<std::int64_t>(pass(loader).size()) == row.size);
  }
}

TEST_CASE("data.data_loader: an empty data set has no batches, shuffled or not") {
  for (const bool shuffle : {false, true}) {
    DataLoader loader(counting(0), {.batch_size = 2, .shuffle = shuffle});
    CHECK(pass(loader).empty());
    CHECK_THROWS_WITH_AS(loader.load({}),
                         "[data_loader] a batch needs a data set with samples, got an empty one",
                         StateError);
  }
}

TEST_CASE("data.data_loader: the plan's positions load every sample of an epoch once") {
  const DataLoader loader(counting(21), {.shuffle = true, .seed = 42});
  const data::WindowPlan plan(
      {.num_samples = 21, .global_batch_size = 8, .micro_batch_size = 3, .world_size = 3});
  const Indices order = loader.order(0);
  Indices labels;
  int num_empty = 0;
  for (int rank = 0; rank < 3; ++rank) {
    for (std::int64_t i = 0; i < plan.steps_in_epoch(); ++i) {
      const data::MicroStep step = plan.step(rank, i);
      const auto first =
          static_cast<std::size_t>(plan.window(step.window).begin + step.positions.begin);
      const auto count = static_cast<std::size_t>(step.positions.size());
      const Batch batch = loader.load(std::span(order).subspan(first, count));
      num_empty += batch.size() == 0;
      const Indices found = batch.labels.to_vector<std::int64_t>();
      labels.insert(labels.end(), found.begin(), found.end());
    }
  }
  std::sort(labels.begin(), labels.end());
  Indices expected(21);
  std::iota(expected.begin(), expected.end(), std::int64_t{-20});
  CHECK(labels == expected);
  CHECK(num_empty == 1);  // the last window has 5 samples; rank 2 owns lanes 5, 6 and 7
}

// ---- faults ----

TEST_CASE("data.data_loader: a sample that cannot be read is named, the cause is kept") {
  DataLoader loader(BrokenAt(3), {.batch_size = 2});
  auto it = loader.begin();
  const char* message =
      "[data_loader] every sample must be readable, got at sample 3: disk on fire";
  CHECK_THROWS_WITH_AS(++it, message, Error);
  CHECK_THROWS_WITH_AS(++it, message, Error);  // the same batch again, nothing is skipped
  CHECK(it->indices == Indices{0, 1});
  try {
    loader.load(Indices{3});
    FAIL("load must throw");
  } catch (const Error& error) {
    CHECK_THROWS_AS(std::rethrow_if_nested(error), std::runtime_error);
  }
}

TEST_CASE("data.data_loader: exhausted memory stays an out-of-memory error") {
  const DataLoader loader((OutOfMemory()));
  CHECK_THROWS_WITH_AS(loader.load(Indices{0}), "no bytes left", OutOfMemoryError);
}

TEST_CASE("data.data_loader: samples of unequal shape are named by their index") {
  DataLoader loader(BrokenAt(0), {.batch_size = 2});
  CHECK_THROWS_WITH_AS(loader.load(Indices{4, 5}),
                       "[default_collate] shapes must agree, got [2] at sample 4 and [3] at sample "
                       "5; PadCollate joins sequences of unequal length",
                       ShapeError);
}

TEST_CASE("data.data_loader: indices outside the data set are index errors") {
  const DataLoader loader(counting(5));
  CHECK_THROWS_WITH_AS(
      loader.load(Indices{0, 5}), "[data_loader] indices must lie in [0, 5), got 5", IndexError);
  CHECK_THROWS_AS(loader.load(Indices{-1}), IndexError);
}

TEST_CASE("data.data_loader: refused options name what would work") {
  const auto make = [](DataLoaderOptions options) { DataLoader(counting(3), options); };
  CHECK_THROWS_WITH_AS(
      make({.batch_size = 0}), "[data_loader] batch_size must be >= 1, got 0", ValueError);
  CHECK_THROWS_WITH_AS(
      make({.batch_size = -1}), "[data_loader] batch_size must be >= 1, got -1", ValueError);
  CHECK_THROWS_WITH_AS(
      make({.batch_size = 4, .drop_last = true}),
      "[data_loader] drop_last must leave a batch, got 3 samples for batch_size 4; "
      "use batch_size <= 3 or drop_last = false",
      ValueError);
  CHECK_THROWS_WITH_AS(DataLoader(std::shared_ptr<const data::Dataset>()),
                       "[data_loader] a data set must be given, got none",
                       ValueError);
  CHECK_THROWS_WITH_AS(DataLoader(counting(1)).set_epoch(-1),
                       "[data_loader] epoch must lie in [0, 2^31 - 1], got -1",
                       ValueError);
}

TEST_CASE("data.data_loader: the last epoch has a pass, and there is none behind it") {
  DataLoader loader(counting(2));
  loader.set_epoch(data::kMaxEpoch);
  int num_batches = 0;
  CHECK_THROWS_WITH_AS(
      [&] {
        for (const Batch& batch : loader) num_batches += batch.size() == 1;
      }(),
      "[data_loader] epoch must lie in [0, 2^31 - 1], got 2147483648",
      ValueError);
  CHECK(num_batches == 2);
  CHECK(loader.epoch() == data::kMaxEpoch);
  CHECK_THROWS_AS(loader.set_epoch(INT64_MAX), ValueError);
}

TEST_CASE("data.data_loader: a collate that loses samples is refused") {
  const auto lose = [](std::span<const Sample> samples) {
    return data::default_collate(samples.first(1));
  };
  const DataLoader loader(counting(3), {.collate = lose});
  CHECK_THROWS_WITH_AS(
      loader.load(Indices{0, 1}),
      "[data_loader] collate must keep all samples, got shape [1, 2] for 2 samples "
      "of 1 rows in dimension 0",
      ShapeError);
  const auto nothing = [](std::span<const Sample>) { return std::vector<Tensor>(); };
  CHECK_THROWS_WITH_AS(DataLoader(counting(3), {.collate = nothing}).load(Indices{0}),
                       "[data_loader] collate must return a tensor, got none",
                       ValueError);
}
