// bits.h: conversions, hex text, ulp distances and hashes.
#include "accrue/core/bits.h"

#include "accrue/tests/support/doctest.h"

#include <cmath>
#include <limits>
#include <vector>

using namespace accrue;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("core.bits: floats and their bits convert both ways") {
  CHECK(bits_of(1.0f) == 0x3f800000U);
  CHECK(bits_of(-0.0) == 0x8000000000000000U);
  CHECK(float_of(0x7f800000U) == kInf);
  CHECK(double_of(0x3ff8000000000000U) == 1.5);
}

TEST_CASE("core.bits: hex text keeps leading zeros") {
  CHECK(hex8(1.0f) == "3f800000");
  CHECK(hex8(0x1p-149f) == "00000001");
  CHECK(hex16(1.0) == "3ff0000000000000");
  CHECK(hex16(std::uint64_t{0xabc}) == "0000000000000abc");
}

TEST_CASE("core.bits: ulp distance counts representable values") {
  CHECK(ulp_distance(1.0f, 1.0f) == 0);
  CHECK(ulp_distance(1.0f, std::nextafter(1.0f, 2.0f)) == 1);
  CHECK(ulp_distance(0x1p-149f, -0x1p-149f) == 2);
  CHECK(ulp_distance(0.0f, -0.0f) == 0);
  CHECK(ulp_distance(std::numeric_limits<float>::max(), kInf) == 1);
  CHECK(ulp_distance(-kInf, kInf) == 2 * 0x7f800000ULL);
  CHECK(ulp_distance(1.0, std::nextafter(1.0, 0.0)) == 1);
  CHECK(ulp_distance(-HUGE_VAL, HUGE_VAL) == 2 * 0x7ff0000000000000ULL);
  const float nan = std::nanf("");
  CHECK(ulp_distance(nan, nan) == 0);
  CHECK(ulp_distance(nan, 1.0f) == UINT64_MAX);
}

TEST_CASE("core.bits: the hash sees order, sign of zero and single bits, not the kind of NaN") {
  const auto hash = [](std::vector<float> values) { return hash_bits(std::span(values)); };
  CHECK(hash({}) == kHashSeed);
  CHECK(hash({1, 2}) != hash({2, 1}));
  CHECK(hash({0.0f}) != hash({-0.0f}));
  CHECK(hash({1.0f}) != hash({std::nextafter(1.0f, 2.0f)}));
  CHECK(hash({float_of(0xffc00001U)}) == hash({float_of(0x7fa00000U)}));
  CHECK(hash({1.0f}) == 0xafd438b0ded0f6b9U);  // fixed: golden files hold such values
}

TEST_CASE("core.bits: a hash continues over several spans") {
  const std::vector<double> all{1, 2, 3};
  const std::span<const double> span(all);
  CHECK(hash_bits(span.subspan(1), hash_bits(span.first(1))) == hash_bits(span));
  const std::vector<std::int64_t> integers{-1};
  const std::vector<std::int32_t> narrow{-1};
  CHECK(hash_bits(std::span(integers)) == hash_bits(std::span(narrow)));
}
