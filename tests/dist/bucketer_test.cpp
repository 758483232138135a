// Buckets on threads: bits, places and order, and what happens when a rank is wrong, late or gone.
#include "accrue/dist/bucketer.h"

#include "accrue/dist/threads.h"
#include "accrue/tests/dist/bucketer_checks.h"
#include "accrue/tests/dist/messages.h"
#include "accrue/tests/support/doctest.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

using namespace accrue;
using namespace accrue::dist;
using test::message;
using test::messages;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Two parameters of 4 elements in a bucket each.
std::vector<BucketParameter> two() { return {{"weight", {2, 2}}, {"bias", {4}}}; }

constexpr BucketerOptions kTiny{.lanes = 8, .first_bucket_bytes = 1, .bucket_cap_bytes = 1};

Bucketer::Uses one_use(const ProcessGroup& group, const Shape& shape, float value = 1) {
  return {{{0, group.rank(), Tensor::full(shape, value)}}};
}

/// A window in which every rank has one use of both parameters.
double whole_window(Bucketer& bucketer, const ProcessGroup& group, std::int64_t step) {
  bucketer.begin(step, "1");
  bucketer.ready(1, one_use(group, {4}));
  bucketer.ready(0, one_use(group, {2, 2}));
  return bucketer.finish();
}

}  // namespace

TEST_CASE("dist.bucketer: gradients have the bits of plain loops on 1 to 8 ranks") {
  std::atomic<int> windows = 0;
  for (int size = 1; size <= 8; ++size) {
    run_ranks(size, [&](ProcessGroup& group) { windows += test::check_bucketer(group); });
  }
  MESSAGE(windows.load(), " windows");
}

TEST_CASE(
    "dist.bucketer: a gradient lies in the same place in every window, aligned, padded by 0") {
  run_ranks(2, [](ProcessGroup& group) {
    Bucketer bucketer(group, two(), &test::sum_of_weights, {});
    std::vector<const float*> places;
    for (int step = 0; step < 3; ++step) {
      CHECK(whole_window(bucketer, group, step) == 2);
      for (std::size_t p = 0; p < 2; ++p) {
        Tensor gradient = bucketer.gradient(p);
        CHECK(equal_bits(gradient, Tensor::ones(two()[p].shape)));
        const float* const place = gradient.data<float>();
        CHECK(reinterpret_cast<std::uintptr_t>(place) % 256 == 0);
        CHECK(std::all_of(place + 4, place + 64, [](float x) { return x == 0; }));
        if (step == 0) places.push_back(place);
        CHECK(place == places[p]);
        gradient = Tensor();  // what zero_grad() does
      }
    }
    CHECK(places[0] == places[1] + 64);
    CHECK(bucketer.gradient(0).shares_storage(bucketer.gradient(1)));
  });
}

TEST_CASE("dist.bucketer: a parameter that no rank used in the window has no gradient") {
  run_ranks(3, [](ProcessGroup& group) {
    Bucketer bucketer(group, two(), &test::sum_of_weights, kTiny);
    whole_window(bucketer, group, 1);
    bucketer.begin(2, "1");
    if (group.rank() == 1) bucketer.ready(0, one_use(group, {2, 2}));
    bucketer.ready(1, {});
    bucketer.finish();
    CHECK(equal_bits(bucketer.gradient(0), Tensor::full({2, 2}, 1.0f / 3.0f)));
    CHECK_FALSE(bucketer.gradient(1).defined());
  });
}

TEST_CASE("dist.bucketer: one node per rank and their number as divisor average plain gradients") {
  run_ranks(3, [](ProcessGroup& group) {
    Bucketer bucketer(
        group,
        {{"w", {2}}},
        [](std::span<const std::string> weights) { return static_cast<double>(weights.size()); },
        {.lanes = 4});
    bucketer.begin(0, "");
    bucketer.ready(0, one_use(group, {2}, static_cast<float>(group.rank())));
    CHECK(bucketer.finish() == 3);
    CHECK(equal_bits(bucketer.gradient(0), Tensor::ones({2})));
  });
}

TEST_CASE("dist.bucketer: float64 parameters travel in buckets of their own") {
  run_ranks(2, [](ProcessGroup& group) {
    Bucketer bucketer(group, {{"a", {2}}, {"b", {2}, DType::float64}}, &test::sum_of_weights, {});
    CHECK(bucketer.buckets().size() == 2);
    bucketer.begin(0, "1.5");
    bucketer.ready(0, one_use(group, {2}));
    bucketer.ready(1, {{{0, group.rank(), Tensor::full({2}, 0.1, DType::float64)}}});
    bucketer.finish();
    CHECK(equal_bits(bucketer.gradient(0), Tensor::full({2}, 2.0f / 3.0f)));
    CHECK(equal_bits(bucketer.gradient(1), Tensor::full({2}, (0.1 + 0.1) / 3, DType::float64)));
  });
}

TEST_CASE("dist.bucketer: a window of weight 0 gives no gradients") {
  run_ranks(2, [](ProcessGroup& group) {
    Bucketer bucketer(group, two(), &test::sum_of_weights, kTiny);
    whole_window(bucketer, group, 1);
    bucketer.begin(2, "0");
    bucketer.ready(1, one_use(group, {4}));
    CHECK(bucketer.finish() == 0);
    CHECK_FALSE(bucketer.gradient(0).defined());
    CHECK_FALSE(bucketer.gradient(1).defined());
    CHECK(whole_window(bucketer, group, 3) == 2);
  });
}

TEST_CASE("dist.bucketer: calls in a wrong state and sums that do not fit are refused") {
  const auto group = self_group();
  Bucketer bucketer(*group, two(), &test::sum_of_weights, kTiny);
  CHECK(message<StateError>([&] { bucketer.ready(0, {}); }) ==
        "[bucketer] a window must be open, got ready() outside of one; call begin() first");
  CHECK_THROWS_AS(bucketer.finish(), StateError);
  CHECK_THROWS_AS(bucketer.fail("no"), StateError);
  bucketer.begin(7, "1");
  CHECK(message<StateError>([&] { bucketer.begin(8, "1"); }) ==
        "[bucketer] a window must end before the next one begins, got begin() of step 8 in step 7; "
        "call finish() first");
  CHECK_THROWS_AS(bucketer.gradient(0), StateError);
  CHECK(message<ShapeError>([&] { bucketer.ready(0, one_use(*group, {3})); }) ==
        "[bucketer] a partial sum must have the shape [2, 2] of weight, got [3]");
  CHECK_THROWS_AS(bucketer.ready(0, {{{0, 0, Tensor::zeros({2, 2}, DType::float64)}}}), DTypeError);
  CHECK_THROWS_AS(bucketer.ready(2, {}), IndexError);
  bucketer.ready(0, one_use(*group, {2, 2}));
  CHECK(bucketer.is_ready(0));
  CHECK_FALSE(bucketer.is_ready(1));
  CHECK(message<StateError>([&] {
          bucketer.ready(0, one_use(*group, {2, 2}));
        }) ==
        "[bucketer] a parameter must become ready once in a window, got weight twice in step 7; "
        "report it after its last use");
  CHECK(bucketer.finish() == 1);
  CHECK(equal_bits(bucketer.gradient(0), Tensor::ones({2, 2})));
}

TEST_CASE(
    "dist.bucketer: layouts that differ are refused on all ranks, naming the first difference") {
  const auto said = [](std::vector<BucketParameter> parameters, const BucketerOptions& options) {
    const auto all = messages<MismatchError>(3, [&](ProcessGroup& group) {
      const bool is_other = group.rank() == 1;
      Bucketer(group, is_other ? parameters : two(), nullptr, is_other ? options : kTiny);
    });
    CHECK(all == std::vector<std::string>(3, all[0]));
    const std::string begin =
        "[bucketer] all ranks must have the same parameters and options, got ";
    const std::string end = " on rank 1; build the model with the same options everywhere";
    REQUIRE(all[0].starts_with(begin));
    REQUIRE(all[0].ends_with(end));
    return all[0].substr(begin.size(), all[0].size() - begin.size() - end.size());
  };
  BucketerOptions options = kTiny;
  const std::vector<BucketParameter> more = {{"weight", {2, 2}}, {"bias", {4}}, {"scale", {1}}};
  CHECK(said(more, options) == "nothing on rank 0 and scale [1] float32");
  CHECK(said({{"weight", {2, 2}}}, options) == "bias [4] float32 on rank 0 and nothing");
  CHECK(said({{"weight", {4}}, {"bias", {4}}}, options) ==
        "weight [2, 2] float32 on rank 0 and weight [4] float32");
  CHECK(said({{"weight", {2, 2}, DType::float64}, {"bias", {4}}}, options) ==
        "weight [2, 2] float32 on rank 0 and weight [2, 2] float64");
  CHECK(said({{"weight", {2, 2}, DType::float32, Device::cuda(1)}, {"bias", {4}}}, options) ==
        "weight [2, 2] float32 on rank 0 and weight [2, 2] float32 cuda");
  CHECK(said({{"gain", {2, 2}}, {"bias", {4}}}, options) ==
        "weight [2, 2] float32 on rank 0 and gain [2, 2] float32");
  options.bucket_cap_bytes = 2;
  CHECK(said(two(), options) == "bucket_cap_bytes = 1 on rank 0 and bucket_cap_bytes = 2");
  options.first_bucket_bytes = 9;
  CHECK(said(two(), options) == "first_bucket_bytes = 1 on rank 0 and first_bucket_bytes = 9");
  options.lanes = 4;
  CHECK(said(two(), options) == "lanes = 8 on rank 0 and lanes = 4");
}

TEST_CASE("dist.bucketer: options outside their domain are refused on all ranks") {
  const auto said = [](const BucketerOptions& options) {
    const auto all = messages<ValueError>(
        2, [&](ProcessGroup& group) { Bucketer(group, two(), nullptr, options); });
    CHECK(all[0] == all[1]);
    return all[0];
  };
  CHECK(said({.bucket_cap_bytes = 0}) ==
        "[bucketer] first_bucket_bytes and bucket_cap_bytes must be positive, got 0; use the "
        "defaults, 1 MiB and 25 MiB");
  CHECK(said({.first_bucket_bytes = -5}) != "");
  CHECK(said({.lanes = 6}) ==
        "[bucketer] lanes must be a power of two in [1, 32768], got 6; use 8, the default");
  CHECK(said({.lanes = 0}) != "");
}

TEST_CASE("dist.bucketer: a rank that fails is named on all ranks, and the next window works") {
  for (const bool overlap : {true, false}) {
    for (int place = 0; place < 3; ++place) {
      BucketerOptions options = kTiny;
      options.overlap = overlap;
      std::atomic<int> published = 0;
      const auto said = messages<DistributedError>(3, [&](ProcessGroup& group) {
        Bucketer bucketer(group, two(), &test::sum_of_weights, options);
        whole_window(bucketer, group, 4);
        bucketer.begin(5, "1");
        for (int i = 0; i < 3; ++i) {
          if (group.rank() == 2 && place == i) bucketer.fail("[mul] shapes must fit");
          if (group.rank() == 2 && place <= i) continue;
          if (i == 0) bucketer.ready(1, one_use(group, {4}));
          if (i == 1) bucketer.ready(0, one_use(group, {2, 2}));
        }
        const std::string reason = message<DistributedError>([&] { bucketer.finish(); });
        for (std::size_t p = 0; p < 2; ++p) published += bucketer.gradient(p).defined();
        CHECK(whole_window(bucketer, group, 6) == 3);
        CHECK(equal_bits(bucketer.gradient(1), Tensor::ones({4})));
        throw DistributedError(reason);
      });
      CHECK(published == 0);
      CHECK(said == std::vector<std::string>(3, said[0]));
      CHECK(said[0].starts_with(
          "[bucketer] all ranks must complete their gradients, got a failure on rank 2: [mul] "
          "shapes must fit; drop the window on all ranks (step 5, bucket "));
    }
  }
}

TEST_CASE(
    "dist.bucketer: what the divisor throws is thrown on all ranks, and the next window works") {
  const auto said = messages<StateError>(2, [](ProcessGroup& group) {
    const auto divisor = [](std::span<const std::string> weights) -> double {
      if (weights[1] == "bad") throw StateError("[loss] weights must agree");
      return 1;
    };
    Bucketer bucketer(group, two(), divisor, kTiny);
    bucketer.begin(1, group.rank() == 1 ? "bad" : "good");
    const std::string reason = message<StateError>([&] { bucketer.finish(); });
    CHECK(whole_window(bucketer, group, 2) == 1);
    throw StateError(reason);
  });
  CHECK(said == std::vector<std::string>(2, "[loss] weights must agree"));
}

TEST_CASE("dist.bucketer: ranks in different steps are refused alike") {
  const auto said = messages<MismatchError>(2, [](ProcessGroup& group) {
    Bucketer bucketer(group, two(), &test::sum_of_weights, kTiny);
    whole_window(bucketer, group, 3 + group.rank());
  });
  CHECK(said == std::vector<std::string>(
                    2,
                    "[bucketer] all ranks must reduce the same step, got 3 on rank 0 and 4 on rank "
                    "1; make all ranks take the same steps"));
}

TEST_CASE("dist.bucketer: an absent rank is named with step and bucket, within the deadline") {
  for (const bool overlap : {true, false}) {
    std::atomic<bool> is_over = false;
    const auto said = messages<TimeoutError>(
        2,
        [&](ProcessGroup& group) {
          BucketerOptions options = kTiny;
          options.overlap = overlap;
          Bucketer bucketer(group, two(), &test::sum_of_weights, options);
          whole_window(bucketer, group, 11);
          bucketer.begin(12, "1");
          bucketer.ready(1, one_use(group, {4}));
          if (group.rank() == 1) {  // stuck in backward
            while (!is_over) std::this_thread::yield();
          }
          const auto start = Clock::now();
          const std::string reason = message<TimeoutError>([&] { bucketer.finish(); });
          if (group.rank() == 0) CHECK(seconds_since(start) < 0.8);
          is_over = true;
          CHECK_THROWS_AS(bucketer.begin(13, "1"), TimeoutError);
          CHECK_FALSE(bucketer.gradient(1).defined());
          throw TimeoutError(reason);
        },
        {.timeout = 0.3});
    const std::string bucket = overlap ? "1" : "0";  // without overlap nothing is sent before
    CHECK(said[0].find("all ranks must come within 0.3 s, got nothing from rank 1 for call") !=
          std::string::npos);
    CHECK(said[0].ends_with("raise the timeout (step 12, bucket " + bucket + ")"));
  }
}

TEST_CASE("dist.bucketer: a timeout that is set later counts from the next window on") {
  std::atomic<bool> is_over = false;
  const auto said = messages<TimeoutError>(
      2,
      [&](ProcessGroup& group) {
        Bucketer bucketer(group, two(), &test::sum_of_weights, kTiny);
        whole_window(bucketer, group, 1);
        group.set_timeout(0.3);
        if (group.rank() == 1) {
          while (!is_over) std::this_thread::yield();
        }
        const std::string reason = message<TimeoutError>([&] { whole_window(bucketer, group, 2); });
        is_over = true;
        throw TimeoutError(reason);
      },
      {.timeout = 20});
  CHECK(said[0].find("all ranks must come within 0.3 s") != std::string::npos);
}

TEST_CASE(
    "dist.bucketer: what goes wrong on one communication thread alone is told to the others") {
  std::vector<std::string> said(2);
  run_ranks(2, [&](ProcessGroup& group) {
    Bucketer bucketer(group, two(), &test::sum_of_weights, kTiny);
    bucketer.begin(1, "1");
    NodeSum more{{}, Tensor::zeros({1}, group.rank() == 1 ? DType::int32 : DType::float32)};
    said[static_cast<std::size_t>(group.rank())] =
        message<Error>([&] { bucketer.finish(std::span(&more, 1)); });
    CHECK_THROWS_AS(bucketer.begin(2, "1"), Error);
  });
  CHECK(said[1].starts_with("[sum_nodes] sums must be float32 or float64"));
  CHECK(said[0].find("got rank 1 gone: it threw [sum_nodes] sums must be") != std::string::npos);
}

TEST_CASE("dist.bucketer: destruction in a window is quick, and the other ranks learn of it") {
  for (const int place : {0, 1, 2}) {
    for (const bool overlap : {true, false}) {
      BucketerOptions options = kTiny;
      options.overlap = overlap;
      const auto said = messages<DistributedError>(3, [&](ProcessGroup& group) {
        const auto start = Clock::now();
        {
          Bucketer bucketer(group, two(), &test::sum_of_weights, options);
          bucketer.begin(1, "1");
          if (place > 0) bucketer.ready(1, one_use(group, {4}));
          if (place > 1) bucketer.ready(0, one_use(group, {2, 2}));
          if (group.rank() != 1) bucketer.finish();
        }
        CHECK(seconds_since(start) < 5);
      });
      for (const int rank : {0, 2}) {
        const std::string& text = said[static_cast<std::size_t>(rank)];
        CHECK(text.find("got rank 1 gone: it gave its window up") != std::string::npos);
        CHECK(text.find("(step 1, bucket ") != std::string::npos);
      }
      CHECK(said[1] == "");
    }
  }
}

TEST_CASE("dist.bucketer: destruction ends a collective that waits for another rank") {
  std::atomic<bool> is_over = false;
  run_ranks(2, [&](ProcessGroup& group) {
    auto bucketer = std::make_unique<Bucketer>(group, two(), &test::sum_of_weights, kTiny);
    if (group.rank() == 0) {
      bucketer->begin(1, "1");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the thread waits for rank 1
      const auto start = Clock::now();
      bucketer.reset();
      CHECK(seconds_since(start) < 5);
      is_over = true;
    }
    while (!is_over) std::this_thread::yield();
    if (group.rank() == 1) CHECK_THROWS_AS(whole_window(*bucketer, group, 1), DistributedError);
  });
}

TEST_CASE("dist.bucketer: a rank without its bucketer is named to those who go on") {
  const auto said = messages<DistributedError>(2, [](ProcessGroup& group) {
    auto bucketer = std::make_unique<Bucketer>(group, two(), &test::sum_of_weights, kTiny);
    whole_window(*bucketer, group, 1);
    if (group.rank() == 1) bucketer.reset();
    if (group.rank() == 0) whole_window(*bucketer, group, 2);
    group.barrier();
  });
  CHECK(said[0].find("got rank 1 gone: it needs its buckets no more") != std::string::npos);
  CHECK(said[0].find("(step 2, bucket 0)") != std::string::npos);
}
