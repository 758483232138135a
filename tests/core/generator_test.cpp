// Generator against torch: the documented streams, and a golden file of 600 mixed calls.
#include "accrue/core/generator.h"

#include "accrue/core/bits.h"
#include "accrue/core/error.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/golden.h"

#include <cmath>
#include <fstream>
#include <initializer_list>
#include <thread>

using accrue::Generator;
using accrue::hash_bits;
using accrue::hex8;

namespace {

std::string hex_words(std::span<const float> values) {
  std::string out;
  for (const float value : values) out += (out.empty() ? "" : " ") + hex8(value);
  return out;
}

std::vector<float> uniform(Generator& generator, std::size_t n, double from = 0, double to = 1) {
  std::vector<float> out(n);
  generator.uniform(out, from, to);
  return out;
}

std::vector<float> normal(Generator& generator, std::size_t n) {
  std::vector<float> out(n);
  generator.normal(out);
  return out;
}

std::string bernoulli(std::uint64_t seed, std::size_t n, double p) {
  Generator generator(seed);
  std::vector<std::uint8_t> draws(n);
  generator.bernoulli(std::span(draws), p);
  std::string out;
  for (const auto draw : draws) out += static_cast<char>('0' + draw);
  return out;
}

// nn.Linear's weight and bias: uniform within sqrt(3) * gain / sqrt(in) and 1 / sqrt(in).
std::string linear_bits(Generator& generator, int in, int out, bool bias) {
  const double gain = std::sqrt(2.0 / (1.0 + std::sqrt(5.0) * std::sqrt(5.0)));
  const double bound = std::sqrt(3.0) * (gain / std::sqrt(in));
  const auto weight = uniform(generator, static_cast<std::size_t>(in * out), -bound, bound);
  if (!bias) return hex_words(weight);
  const double bias_bound = 1.0 / std::sqrt(in);
  const auto b = uniform(generator, static_cast<std::size_t>(out), -bias_bound, bias_bound);
  return hex_words(weight) + " | " + hex_words(b);
}

std::string linear_bits(std::uint64_t seed, int in, int out, bool bias = true) {
  Generator generator(seed);
  return linear_bits(generator, in, out, bias);
}

struct GoldenCall {
  std::string operation, seed;
  std::size_t n = 0;
  double a = 0, b = 0;
  std::string hash;
};

template <class T, class Fill>
std::uint64_t hash_of(std::size_t n, Fill fill) {
  std::vector<T> values(n);
  fill(std::span(values));
  return hash_bits(std::span(values));
}

std::uint64_t replay(Generator& g, const GoldenCall& call) {
  const auto uniform = [&](auto out) { g.uniform(out, call.a, call.b); };
  const auto normal = [&](auto out) { g.normal(out, call.a, call.b); };
  const auto bernoulli = [&](auto out) { g.bernoulli(out, call.a); };
  const auto random = [&](auto out) {
    for (auto& value : out) value = g.random_();
  };
  const auto randint = [&](auto out) {
    g.randint(out, static_cast<std::int64_t>(call.a), static_cast<std::int64_t>(call.b));
  };
  const auto each = [&](std::span<float> out) {
    std::vector<float> p(out.size());
    for (std::size_t i = 0; i < p.size(); ++i) {
      p[i] = static_cast<float>(i) / static_cast<float>(p.size());
    }
    g.bernoulli(out, p);
  };
  const std::string& name = call.operation;
  if (name == "uniform_float") return hash_of<float>(call.n, uniform);
  if (name == "uniform_double") return hash_of<double>(call.n, uniform);
  if (name == "normal_float") return hash_of<float>(call.n, normal);
  if (name == "normal_double") return hash_of<double>(call.n, normal);
  if (name == "bernoulli_float") return hash_of<float>(call.n, bernoulli);
  if (name == "bernoulli_double") return hash_of<double>(call.n, bernoulli);
  if (name == "bernoulli_uint8") return hash_of<std::uint8_t>(call.n, bernoulli);
  if (name == "bernoulli_each") return hash_of<float>(call.n, each);
  if (name == "randint") return hash_of<std::int64_t>(call.n, randint);
  if (name == "random") return hash_of<std::int64_t>(call.n, random);
  if (name == "randperm") {
    const auto order = g.randperm(static_cast<std::int64_t>(call.n));
    return hash_bits(std::span(order));
  }
  REQUIRE(name == "state");
  const auto state = g.get_state();
  return hash_bits(std::span(state));
}

void check_values(std::span<const float> got, std::initializer_list<double> want) {
  REQUIRE(got.size() >= want.size());
  std::size_t i = 0;
  for (const double value : want) CHECK(std::abs(got[i++] - value) < 5.1e-9);
}

}  // namespace

TEST_CASE("core.generator: 600 mixed calls give the bits of torch 1.13.1") {
  std::ifstream file(accrue::tests::golden_path("torch_generator.txt"));
  REQUIRE(file);
  Generator generator;
  int num_calls = 0;
  for (GoldenCall c; file >> c.operation >> c.seed >> c.n >> c.a >> c.b >> c.hash; ++num_calls) {
    if (c.seed != "-") generator.manual_seed(std::stoull(c.seed));
    CAPTURE(num_calls);
    CAPTURE(c.operation);
    CHECK(accrue::hex16(replay(generator, c)) == c.hash);
  }
  CHECK(num_calls == 600);
  MESSAGE("replayed ", num_calls, " calls");
}

TEST_CASE("core.generator: first words of seeds 0, 1, 42 and 1234") {
  const auto words = [](std::uint64_t seed) {
    Generator g(seed);
    return std::vector<std::uint32_t>{g.random(), g.random(), g.random(), g.random()};
  };
  CHECK(words(0) == std::vector<std::uint32_t>{2357136044, 2546248239, 3071714933, 3626093760});
  CHECK(words(1) == std::vector<std::uint32_t>{1791095845, 4282876139, 3093770124, 4005303368});
  CHECK(words(42) == std::vector<std::uint32_t>{1608637542, 3421126067, 4083286876, 787846414});
  CHECK(words(1234) == std::vector<std::uint32_t>{822569775, 2137449171, 2671936806, 3512589365});
  Generator g(0);
  CHECK(g.random64() == (2357136044ULL << 32 | 2546248239));
}

TEST_CASE("core.generator: only the low 32 bits of a seed choose the stream") {
  Generator a(5), b((1ULL << 32) + 5), negative(static_cast<std::uint64_t>(-1)), low(0xffffffffU);
  CHECK(a.random() == b.random());
  CHECK(negative.random() == low.random());
  CHECK(b.initial_seed() == (1ULL << 32) + 5);
  CHECK(Generator().initial_seed() == 67280421310721);
}

TEST_CASE("core.generator: rand and uniform samples") {
  Generator g0(0), g1(1), g42(42), g1234(1234);
  CHECK(hex_words(uniform(g0, 5)) == "3efe1558 3f44aa2f 3db533a8 3e073300 3e9d6686");
  check_values(uniform(g1, 5), {.75763160, .27931088, .40306926, .73468447, .02928156});
  check_values(uniform(g42, 5), {.88226926, .91500396, .38286376, .95930564, .39044821});
  check_values(uniform(g1234, 5), {.02897924, .40189856, .25984418, .36664134, .05830073});
  g0.manual_seed(0);
  std::vector<double> doubles(3);
  g0.uniform(doubles);
  CHECK(doubles == std::vector{0.9700530018065531, 0.707819864399788, 0.45938294312745087});
  CHECK(hex_words(uniform(g0, 6, -.37, .37)) ==
        "bbf037da 3e96347a bd067e4e 3dc88348 bde50146 bd94f30b");
}

TEST_CASE("core.generator: randn samples below and from 16 elements") {
  Generator g0(0), g1(1), g42(42), g1234(1234);
  CHECK(hex_words(normal(g0, 5)) == "3fc53f5c be963c50 c00b7149 3f1184b6 bf8ad1a1");
  check_values(normal(g1, 5), {.66135216, .26692411, .06167726, .62131733, -.45190597});
  check_values(normal(g42, 5), {.33669037, .12880941, .23446237, .23033303, -1.12285638});
  check_values(normal(g1234, 5), {.04613046, .40240282, -1.01152909, .21673824, -.61227310});
  for (Generator* g : {&g0, &g1, &g42, &g1234}) g->manual_seed(g->initial_seed());
  CHECK(hex_words(normal(g0, 16)) ==
        "bf901b85 bf93808a be804bd6 bede255d 3f594515 3f312783 bea1cc6d c0075fc1 "
        "3ea50138 bfa1b4f4 3eb330ff 3e9dc3bb 3df56f77 3f9e6b93 3f8ef28e be7d367c");
  check_values(normal(g1, 16), {-1.52559590, -.75023180, -.65398091, -1.60948479, -.10016718});
  check_values(normal(g42, 16), {1.92691529, 1.48728406, .90071720, -2.10552096, .67841846});
  check_values(normal(g1234, 16), {-.11171857, -.49659011, .16307370, -.88168776, .05390019});
  g0.manual_seed(0);
  CHECK(hex_words(normal(g0, 17)) ==
        "bf901b85 bfd91446 3f111004 3f4b235d 3f194d8b bfc70d5b beaec6ca 3fed2f4e 3eefaa55 "
        "bf15e32b be318eeb 3e3be1a4 3fb1d6c0 3fcb0d00 3f72409c bf57fb33 3f6e8c30");
}

TEST_CASE("core.generator: the second normal of a pair survives between calls and in the state") {
  Generator a(3), b(3);
  const auto pair = normal(a, 2);
  CHECK(normal(b, 1)[0] == pair[0]);
  Generator restored;
  restored.set_state(b.get_state());
  CHECK(normal(b, 1)[0] == pair[1]);
  CHECK(normal(restored, 1)[0] == pair[1]);
  CHECK(normal(restored, 3) == normal(b, 3));
}

TEST_CASE("core.generator: randperm, randint and bernoulli samples") {
  struct Row {
    std::uint64_t seed;
    std::vector<std::int64_t> order, integers;
    std::string coins;
  };
  const Row rows[] = {
      {0, {4, 1, 7, 5, 3, 9, 0, 8, 6, 2}, {44, 39, 33, 60, 63}, "0010001101"},
      {1, {5, 6, 1, 2, 0, 8, 9, 3, 7, 4}, {45, 39, 24, 68, 63}, "1111011001"},
      {42, {2, 6, 1, 8, 4, 5, 0, 9, 3, 7}, {42, 67, 76, 14, 26}, "1111010011"},
      {1234, {5, 4, 8, 2, 6, 9, 1, 7, 0, 3}, {75, 71, 6, 65, 16}, "1111111110"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.seed);
    Generator g(row.seed);
    CHECK(g.randperm(10) == row.order);
    g.manual_seed(row.seed);
    std::vector<std::int64_t> integers(5);
    g.randint(integers, 0, 100);
    CHECK(integers == row.integers);
    CHECK(bernoulli(row.seed, 10, 0.5) == row.coins);
  }
  Generator g(0);
  CHECK(g.random_() == 900450186894289455);
  CHECK(g.random_() == 3969543146641149120);
  CHECK(g.randperm(0).empty());
  const auto before = g.get_state();
  CHECK(g.randperm(1) == std::vector<std::int64_t>{0});
  CHECK(g.get_state() == before);
}

TEST_CASE("core.generator: initial bits of linear layers") {
  CHECK(linear_bits(0, 1, 2, false) == "bbf55400 3f09545e");
  CHECK(linear_bits(0, 1, 2) == "bbf55400 3f09545e | bf52b316 bf3c6680");
  CHECK(linear_bits(0, 2, 2) == "bbad7922 3ec2369c bf14fcb1 bf05381d | be8b70d6 3e422aab");
  CHECK(linear_bits(0, 3, 2) ==
        "bb8da3e8 3e9e9313 bef34b7e bed98bc9 be63b4b1 3e1e8953 | bc3b6b40 3eea617a");
  CHECK(linear_bits(42, 2, 3) ==
        "3f0a6571 3f163f5b be29a1a3 3f264952 be1ea5df 3e121cb0 | beb042a6 3ed49e79 3f1f9389");
  CHECK(linear_bits(42, 4, 1) == "3ec3b8cc 3ed47b66 bdefe520 3eeb2a1c | bde05cb0");
  Generator g(0);  // Linear(2, 3) followed by Linear(3, 1)
  CHECK(linear_bits(g, 2, 3, true) ==
        "bbad7922 3ec2369c bf14fcb1 bf05381d be8b70d6 3e422aab | bc658a57 3f0f8740 bd8083de");
  CHECK(linear_bits(g, 3, 1, true) == "3e1c70d2 be32ab9e bde86bea | bf0d33bd");
}

TEST_CASE("core.generator: the state has torch's layout") {
  Generator g(77);
  for (int i = 0; i < 3; ++i) g.random();
  const auto state = g.get_state();
  REQUIRE(state.size() == 5056);
  CHECK(state[0] == 77);
  CHECK(state[8] + 256 * state[9] == 622);
  CHECK(state[12] == 1);
  CHECK(state[16] == 3);
  Generator other;
  other.set_state(state);
  CHECK(other.initial_seed() == 77);
  for (int i = 0; i < 1500; ++i) REQUIRE(other.random() == g.random());
  CHECK(other.get_state() == g.get_state());
}

TEST_CASE("core.generator: a state of wrong size or content is refused and changes nothing") {
  Generator g(1);
  g.random();
  const auto good = g.get_state();
  CHECK_THROWS_WITH_AS(g.set_state(std::vector<std::uint8_t>(5048)),
                       "[set_state] needs 5056 bytes, got 5048; pass bytes from get_state()",
                       accrue::ValueError);
  CHECK_THROWS_WITH_AS(g.set_state(std::vector<std::uint8_t>(5056)),
                       "[set_state] needs a position that a generator can have, got seeded 0, "
                       "left 0, next 0; pass bytes from get_state()",
                       accrue::ValueError);
  // left, seeded, next, a word's high half, both flags
  for (const std::size_t byte : {9U, 12U, 16U, 23U, 28U, 5040U, 5052U}) {
    auto bad = good;
    bad[byte] = 0x7f;
    CAPTURE(byte);
    CHECK_THROWS_AS(g.set_state(bad), accrue::ValueError);
    CHECK(g.get_state() == good);
  }
}

TEST_CASE("core.generator: arguments outside their domain are refused and draw nothing") {
  Generator g(9);
  const auto before = g.get_state();
  std::vector<float> f(3);
  std::vector<std::int64_t> i(3);
  const double nan = std::nan("");
  CHECK_THROWS_WITH_AS(g.uniform(f, 1.0, 0.0),
                       "[uniform] needs from <= to with a finite distance, got from 1 and to 0; "
                       "swap or shrink the bounds",
                       accrue::ValueError);
  CHECK_THROWS_AS(g.uniform(f, nan, 1.0), accrue::ValueError);
  CHECK_THROWS_AS(g.uniform(f, 0.0, nan), accrue::ValueError);
  CHECK_THROWS_AS(g.uniform(f, -3e38, 3e38), accrue::ValueError);
  CHECK_THROWS_WITH_AS(
      g.normal(f, 0.0, -1.0), "[normal] std must be >= 0, got -1; pass a size", accrue::ValueError);
  CHECK_THROWS_AS(g.normal(f, 0.0, nan), accrue::ValueError);
  CHECK_THROWS_WITH_AS(g.bernoulli(std::span(f), 1.5),
                       "[bernoulli] p must lie in [0, 1], got 1.5; pass a probability",
                       accrue::ValueError);
  CHECK_THROWS_AS(g.bernoulli(std::span(f), nan), accrue::ValueError);
  CHECK_THROWS_AS(g.bernoulli(f, std::vector{0.5f, 2.0f, 0.5f}), accrue::ValueError);
  CHECK_THROWS_WITH_AS(g.bernoulli(f, std::vector{0.5f}),
                       "[bernoulli] needs one p per element, got 1 for 3 elements; "
                       "pass equal sizes",
                       accrue::ShapeError);
  CHECK_THROWS_WITH_AS(g.randint(i, 4, 4),
                       "[randint] needs low < high, got low 4 and high 4; widen the range",
                       accrue::ValueError);
  CHECK_THROWS_WITH_AS(
      g.randperm(-1), "[randperm] n must be >= 0, got -1; pass a count", accrue::ValueError);
  CHECK(g.get_state() == before);
}

TEST_CASE("core.generator: randint covers the whole range of int64") {
  Generator g(0), raw(0);
  std::vector<std::int64_t> out(4);
  g.randint(out, INT64_MIN, INT64_MAX);
  for (const auto value : out) {
    CHECK(static_cast<std::uint64_t>(value) == raw.random64() % UINT64_MAX + (1ULL << 63));
  }
}

TEST_CASE("core.generator: each thread has its own default generator") {
  accrue::manual_seed(7);
  std::uint32_t there = 0;
  std::thread([&] {
    CHECK(accrue::default_generator().initial_seed() == Generator::kDefaultSeed);
    accrue::manual_seed(7);
    there = accrue::default_generator().random();
  }).join();
  CHECK(accrue::default_generator().random() == there);
}
