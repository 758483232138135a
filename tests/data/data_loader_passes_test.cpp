// Passes over a DataLoader: whole, left early, nested, copied, and resumed by skipping.
#include "accrue/core/error.h"
#include "accrue/data/data_loader.h"
#include "accrue/tests/data/counting.h"
#include "accrue/tests/support/doctest.h"

#include <rapidcheck.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <ranges>
#include <vector>

using namespace accrue;
using accrue::data::Batch;
using accrue::data::DataLoader;
using accrue::data::DataLoaderOptions;
using accrue::data::skip_first_batches;
using namespace accrue::data::testing;

static_assert(std::input_iterator<DataLoader::Iterator>);
static_assert(std::ranges::input_range<DataLoader>);

TEST_CASE("data.data_loader_passes: a pass walks one epoch, its end moves to the next") {
  DataLoader loader(counting(8), {.batch_size = 3, .shuffle = true, .seed = 42});
  CHECK(pass(loader) == std::vector<Indices>{{6, 3, 0}, {7, 2, 1}, {4, 5}});
  CHECK(loader.epoch() == 1);
  CHECK(pass(loader) == std::vector<Indices>{{4, 5, 7}, {1, 3, 2}, {6, 0}});
  loader.set_epoch(0);
  CHECK(pass(loader).front() == Indices{6, 3, 0});
}

TEST_CASE("data.data_loader_passes: every epoch holds every sample once") {
  int num_samples = 0;
  const bool holds = rc::check("passes are permutations", [&] {
    const std::int64_t n = *rc::gen::inRange(0, 60);
    const std::int64_t b = *rc::gen::inRange(1, 70);
    const std::uint64_t seed = *rc::gen::arbitrary<std::uint64_t>();
    DataLoader loader(counting(n), {.batch_size = b, .shuffle = true, .seed = seed});
    loader.set_epoch(*rc::gen::inRange(0, 1000));
    const Indices order = loader.order(loader.epoch());
    Indices seen;
    for (const Batch& batch : loader) {
      RC_ASSERT(batch.size() == std::min(b, n - static_cast<std::int64_t>(seen.size())));
      seen.insert(seen.end(), batch.indices.begin(), batch.indices.end());
    }
    RC_ASSERT(seen == order);
    std::sort(seen.begin(), seen.end());
    Indices all(static_cast<std::size_t>(n));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    RC_ASSERT(seen == all);
    num_samples += static_cast<int>(n);
  });
  CHECK(holds);
  MESSAGE(num_samples << " samples dealt");
}

// ---- several passes ----

TEST_CASE("data.data_loader_passes: a pass left by break starts the same epoch again") {
  DataLoader loader(counting(8), {.batch_size = 3, .shuffle = true, .seed = 42});
  for (const Batch& batch : loader) {
    CHECK(batch.indices == Indices{6, 3, 0});
    break;
  }
  CHECK(loader.epoch() == 0);
  CHECK(pass(loader).size() == 3);
}

TEST_CASE("data.data_loader_passes: nested passes are independent") {
  DataLoader loader(counting(8), {.batch_size = 3, .shuffle = true, .seed = 42});
  std::vector<Indices> outer;
  std::vector<Indices> inner;
  for (const Batch& batch : loader) {
    outer.push_back(batch.indices);
    if (outer.size() == 2) inner = pass(loader);
  }
  CHECK(outer == std::vector<Indices>{{6, 3, 0}, {7, 2, 1}, {4, 5}});
  CHECK(inner == outer);
  CHECK(loader.epoch() == 2);
}

TEST_CASE("data.data_loader_passes: copies of a loader count their own epochs") {
  DataLoader first(counting(4));
  DataLoader second = first;
  pass(first);
  CHECK(first.epoch() == 1);
  CHECK(second.epoch() == 0);
  CHECK(&first.dataset() == &second.dataset());
}

// ---- skipping ----

TEST_CASE("data.data_loader_passes: skip_first_batches walks the later batches (case C093)") {
  DataLoader loader(counting(16), {.batch_size = 4});
  const auto later = skip_first_batches(loader, 2);
  CHECK(later.size() == 2);
  const std::vector<Indices> expected{{8, 9, 10, 11}, {12, 13, 14, 15}};
  CHECK(pass(later) == expected);
  CHECK(pass(later) == expected);
  CHECK(pass(loader).size() == 4);
}

TEST_CASE(
    "data.data_loader_passes: a resumed epoch continues its order, the next pass the next epoch") {
  const DataLoaderOptions options{.batch_size = 3, .shuffle = true, .seed = 42};
  DataLoader whole(counting(8), options);
  std::vector<Indices> expected;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (const Indices& batch : pass(whole)) expected.push_back(batch);
  }
  for (std::int64_t stop = 0; stop < 9; ++stop) {
    CAPTURE(stop);
    DataLoader resumed(counting(8), options);
    resumed.set_epoch(stop / 3);
    std::vector<Indices> seen = pass(skip_first_batches(resumed, stop % 3));
    while (resumed.epoch() < 3) {
      for (const Indices& batch : pass(resumed)) seen.push_back(batch);
    }
    CHECK(seen == std::vector<Indices>(expected.begin() + stop, expected.end()));
  }
}

TEST_CASE(
    "data.data_loader_passes: skipping keeps drop_last, reads nothing and may skip everything") {
  DataLoader dropping(counting(10), {.batch_size = 4, .drop_last = true});
  CHECK(pass(skip_first_batches(dropping, 1)) == std::vector<Indices>{{4, 5, 6, 7}});
  DataLoader broken(BrokenAt(1), {.batch_size = 2});
  CHECK((*skip_first_batches(broken, 1).begin()).indices == Indices{2, 3});
  DataLoader keeping(counting(10), {.batch_size = 4});
  for (const std::int64_t count : {std::int64_t{3}, std::int64_t{4}, std::int64_t{1} << 62}) {
    CHECK(pass(skip_first_batches(keeping, count)).empty());
    CHECK(skip_first_batches(keeping, count).size() == 0);
  }
  CHECK_THROWS_WITH_AS(skip_first_batches(dropping, -1),
                       "[skip_first_batches] the number of batches must be >= 0, got -1",
                       ValueError);
}
