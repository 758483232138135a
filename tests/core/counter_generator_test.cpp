// CounterGenerator: known answers of Random123, addresses, independence of order, distribution.
#include "accrue/core/counter_generator.h"

#include "accrue/core/error.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>
#include <memory>
#include <set>
#include <vector>

using namespace accrue;

namespace {

using Words = std::array<std::uint32_t, 4>;

std::vector<float> draw(const CounterGenerator& g, std::size_t n, std::uint64_t first = 0) {
  std::vector<float> out(n);
  g.uniform(out, first);
  return out;
}

}  // namespace

TEST_CASE("core.counter_generator: philox gives the known answers of Random123") {
  constexpr std::uint32_t kOnes = 0xffffffffU;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("core.counter_generator: an address becomes key and counter words as documented") {
  const std::uint64_t seed = 0x1111111122222222, window = 0x3333333344444444;
  const std::uint64_t position = 0x5555555566666666, stream = 0x7777777788888888;
  Words s = philox({0x44444444, 0x33333333, 0x66666666, 0x55555555}, {0x22222222, 0x11111111});
  s = philox(s, {0x88888888, 0x77777777});
  s = philox(s, {9, 1});
  const std::uint64_t j = (std::uint64_t{5} << 34) + 4 * 6 + 3;  // word 3 of block (6, 5)
  const Words block = philox({6, 5, s[2], s[3]}, {s[0], s[1]});
  const auto g = CounterGenerator(seed, window, position, stream).at((std::uint64_t{1} << 32) + 9);
  CHECK(g.uniform(j) == static_cast<float>(block[3] >> 8) * 0x1p-24f);
}

TEST_CASE("core.counter_generator: a stream is the FNV-1a hash of the path plus the use") {
  CHECK(stream_of("", 0) == 0xcbf29ce484222325U);
  CHECK(stream_of("a", 0) == 0xaf63dc4c8601ec8cU);
  CHECK(stream_of("foobar", 2) == 0x85944171f73967e8U + 2);
}

TEST_CASE("core.counter_generator: numbers do not depend on the order or number of draws") {
  const CounterGenerator g(1, 2, 3, stream_of("encoder.dropout", 0));
  const auto all = draw(g, 1000);
  for (std::size_t j = 1000; j-- > 0;) CHECK(g.uniform(j) == all[j]);
  for (const std::size_t first : {0U, 1U, 2U, 3U, 4U, 7U, 501U}) {
    const auto part = draw(g, 13, first);
    CHECK(std::equal(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(first)));
  }
}

TEST_CASE("core.counter_generator: padding a sample leaves its numbers in place") {
  const CounterGenerator g(1, 2, 3, 4);
  const auto sample = [&](std::uint64_t rows, std::size_t cols) {
    std::vector<std::vector<float>> out;
    for (std::uint64_t t = 0; t < rows; ++t) out.push_back(draw(g.at(t), cols));
    return out;
  };
  const auto small = sample(5, 7), padded = sample(9, 16);
  for (std::size_t t = 0; t < 5; ++t) {
    for (std::size_t h = 0; h < 7; ++h) CHECK(small[t][h] == padded[t][h]);
  }
}

TEST_CASE("core.counter_generator: each part of the address changes the numbers") {
  std::set<std::vector<float>> seen;
  int num_addresses = 0;
  const auto add = [&](const CounterGenerator& g) {
    seen.insert(draw(g, 4));
    ++num_addresses;
  };
  for (const std::uint64_t x : {std::uint64_t{1}, std::uint64_t{1} << 32, std::uint64_t{7}}) {
    add({x, 0, 0, 0});
    add({0, x, 0, 0});
    add({0, 0, x, 0});
    add({0, 0, 0, x});
    add(CounterGenerator(0, 0, 0, 0).at(x));
    add(CounterGenerator(0, 0, 0, 0).at(x).at(0));
    add(CounterGenerator(0, 0, 0, 0).at(0).at(x));
  }
  CHECK(seen.size() == static_cast<std::size_t>(num_addresses));
}

TEST_CASE("core.counter_generator: numbers lie in [0, 1) with the right mean and spread") {
  double sum = 0, squares = 0;
  constexpr int kCount = 1 << 18;
  for (int position = 0; position < 1024; ++position) {
    for (const float u : draw({5, 0, static_cast<std::uint64_t>(position), 9}, kCount / 1024)) {
      REQUIRE(u >= 0.0f);
      REQUIRE(u < 1.0f);
      sum += u;
      squares += u * u;
    }
  }
  CHECK(std::abs(sum / kCount - 0.5) < 0.003);  // five standard deviations
  CHECK(std::abs(squares / kCount - 1.0 / 3) < 0.003);
  MESSAGE("swept ", kCount, " numbers");
}

TEST_CASE("core.counter_generator: bernoulli compares the uniform number with p") {
  const CounterGenerator g(5, 6, 7, 8);
  const std::size_t n = 500;
  const auto uniform = draw(g, n, 3);
  const auto out = std::make_unique<bool[]>(n);
  for (const double p : {0.0, 0.25, 1.0}) {
    g.bernoulli({out.get(), n}, p, 3);
    for (std::size_t i = 0; i < n; ++i) CHECK(out[i] == (static_cast<double>(uniform[i]) < p));
  }
  CHECK_THROWS_WITH_AS(g.bernoulli({out.get(), n}, 1.5),
                       "[bernoulli] p must lie in [0, 1], got 1.5; pass a probability",
                       ValueError);
  CHECK_THROWS_AS(g.bernoulli({out.get(), n}, std::nan("")), ValueError);
}
