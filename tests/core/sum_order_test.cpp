// sum_order.h against the contract read literally.
#include "accrue/core/sum_order.h"

#include "accrue/core/bits.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/literal_sum.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace accrue;

namespace {

const float kInf = std::numeric_limits<float>::infinity();

template <class T>
T sum(const std::vector<T>& x) {
  return sum_in_order<T>(static_cast<std::int64_t>(x.size()),
                         [&](std::int64_t j) { return x[static_cast<std::size_t>(j)]; });
}

float max(const std::vector<float>& x) {
  return max_in_order<float>(static_cast<std::int64_t>(x.size()),
                             [&](std::int64_t j) { return x[static_cast<std::size_t>(j)]; });
}

float literal(const std::vector<float>& x) {
  return test::literal_sum<float>(static_cast<std::int64_t>(x.size()),
                                  [&](std::int64_t j) { return x[static_cast<std::size_t>(j)]; });
}

std::vector<float> numbers(std::size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<float> x(n);
  for (float& value : x) {
    value =
        std::ldexp(static_cast<float>(engine()) - 0x1p31f, static_cast<int>(engine() % 40) - 50);
  }
  return x;
}

const std::size_t kSizes[] = {0,    1,    2,    31,   32,   33,   63,   1000, 1023,  1024,
                              1025, 2048, 2049, 3000, 3073, 5000, 7169, 8192, 11264, 70001};

}  // namespace

TEST_CASE("core.sum_order: the sum equals the contract read literally") {
  int num_differ = 0;
  for (const std::size_t n : kSizes) {
    const auto x = numbers(n, static_cast<unsigned>(n));
    CAPTURE(n);
    CHECK(hex8(sum(x)) == hex8(literal(x)));
    float left_to_right = 0;
    for (const float value : x) left_to_right += value;
    num_differ += left_to_right != sum(x);
  }
  CHECK(num_differ > 10);  // the numbers can tell orders apart
  MESSAGE("swept ", std::size(kSizes), " sizes");
}

TEST_CASE("core.sum_order: zeros appended on the right never change the bits") {
  for (const std::size_t n : kSizes) {
    auto x = numbers(n, 7);
    const std::string expected = hex8(sum(x));
    for (const float zero : {0.0f, -0.0f}) {
      for (const std::size_t padding : {1U, 31U, 32U, 1000U, 4096U}) {
        auto padded = x;
        padded.resize(n + padding, zero);
        CAPTURE(n);
        CAPTURE(padding);
        CHECK(hex8(sum(padded)) == expected);
      }
    }
  }
}

TEST_CASE("core.sum_order: sums of nothing and of negative zeros are +0") {
  CHECK(hex8(sum(std::vector<float>{})) == "00000000");
  CHECK(hex16(sum(std::vector<double>{})) == "0000000000000000");
  CHECK(hex8(sum(std::vector<float>(1, -0.0f))) == "00000000");
  CHECK(hex8(sum(std::vector<float>(2000, -0.0f))) == "00000000");
}

TEST_CASE("core.sum_order: a product that underflows to -0 leaves +0 with and without padding") {
  const auto dot = [](std::int64_t n) {
    return accumulate_in_order<float>(n, [](float acc, std::int64_t j) {
      return j < 32 ? std::fma(-0x1p-149f, 0x1p-149f, acc) : std::fma(0.0f, 0.0f, acc);
    });
  };
  CHECK(hex8(dot(32)) == "00000000");
  CHECK(hex8(dot(64)) == "00000000");
}

TEST_CASE("core.sum_order: fifty million ones sum to exactly fifty million") {
  CHECK(sum_in_order<float>(50'000'000, [](std::int64_t) { return 1.0f; }) == 5e7f);
}

TEST_CASE("core.sum_order: infinities and NaN propagate") {
  std::vector<float> x(1500, 1.0f);
  x[1400] = kInf;
  CHECK(sum(x) == kInf);
  x[3] = -kInf;
  CHECK(std::isnan(sum(x)));
}

TEST_CASE("core.sum_order: doubles have the same shape") {
  std::vector<double> x(3000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sqrt(static_cast<double>(i));
  std::vector<double> blocks;
  BlockTree<double> tree;
  for (std::int64_t begin = 0; begin < 3000; begin += kSumBlock) {
    const auto load = [&](double acc, std::int64_t j) {
      return acc + x[static_cast<std::size_t>(j)];
    };
    tree.push(accumulate_block<double>(begin, std::min(kSumBlock, 3000 - begin), load));
  }
  CHECK(tree.result() == sum(x));
}

TEST_CASE("core.sum_order: the maximum is exact wherever it stands and NaN wins") {
  for (const std::size_t n : kSizes) {
    if (n == 0) continue;
    std::vector<float> x(n, -2.0f);
    for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
      auto with = x;
      with[at] = 3.0f;
      CHECK(max(with) == 3.0f);
      with[at] = std::nanf("");
      with[0] = at == 0 ? with[0] : kInf;
      CHECK(std::isnan(max(with)));
    }
  }
  CHECK(max({}) == -kInf);
  CHECK(max({-kInf, -kInf}) == -kInf);
  CHECK(hex8(max({-0.0f, 0.0f})) == "00000000");
  CHECK(hex8(max({-0.0f})) == "00000000");
}
