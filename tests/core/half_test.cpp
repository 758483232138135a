// BFloat16 and Float16: all 65,536 values of each, ties, edges, torch's rounding and printing.
#include "accrue/core/half.h"

#include "accrue/core/tensor.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/golden.h"

#include <cmath>
#include <fstream>
#include <sstream>
#include <vector>

using namespace accrue;

namespace {

struct Format {
  int exponent_bits, fraction_bits;
};
template <class Half>
constexpr Format kFormat = std::is_same_v<Half, BFloat16> ? Format{8, 7} : Format{5, 10};

/// What the bits mean, by the definition of the format.
template <class Half>
double value_of(std::uint32_t bits) {
  const auto [exponent_bits, fraction_bits] = kFormat<Half>;
  const int bias = (1 << (exponent_bits - 1)) - 1, largest = (1 << exponent_bits) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & largest;
  const auto fraction = static_cast<double>(bits & ((1U << fraction_bits) - 1));
  double size = std::ldexp(fraction, 1 - bias - fraction_bits);
  if (exponent > 0) {
    size = std::ldexp(std::ldexp(1.0, fraction_bits) + fraction, exponent - bias - fraction_bits);
  }
  if (exponent == largest) size = fraction == 0 ? HUGE_VAL : NAN;
  return bits >> 15 ? -size : size;
}

std::uint32_t parse_bits(std::istream& words) {
  std::string word;
  words >> word;
  return static_cast<std::uint32_t>(std::stoul(word, nullptr, 16));
}

/// The tensor of a `print` line, as torch prints it.
std::string printed(std::istream& words) {
  std::string name, bits;
  words >> name;
  std::vector<std::uint16_t> values;
  while (words >> bits) {
    values.push_back(static_cast<std::uint16_t>(std::stoul(bits, nullptr, 16)));
  }
  const auto count = static_cast<std::int64_t>(values.size());
  const DType dtype = name == "bfloat16" ? DType::bfloat16 : DType::float16;
  Tensor x = Tensor::empty({count}, dtype);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::bfloat16) {
      x.mutable_data<BFloat16>()[i].bits = values[i];
    } else {
      x.mutable_data<Float16>()[i].bits = values[i];
    }
  }
  return x.str();
}

}  // namespace

TEST_CASE_TEMPLATE("core.half: all 65,536 values widen exactly and come back in the same bits",
                   Half,
                   BFloat16,
                   Float16) {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const Half half = Half::from_bits(static_cast<std::uint16_t>(bits));
    const double exact = value_of<Half>(bits);
    const float wide = static_cast<float>(half);
    if (std::isnan(exact)) {
      const std::uint32_t quiet = bits | 1U << (kFormat<Half>.fraction_bits - 1);
      wrong += !std::isnan(wide) || (bits_of(wide) & 0x400000U) == 0 || Half(wide).bits != quiet ||
               half == half;
      continue;
    }
    wrong += bits_of(static_cast<double>(wide)) != bits_of(exact);
    wrong += Half(wide).bits != bits || Half(exact).bits != bits || !(half == half);
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("core.half: between all neighbours, ties go to even and all else to the nearer",
                   Half,
                   BFloat16,
                   Float16) {
  int wrong = 0, num_ties = 0;
  const std::uint32_t infinity = ((1U << kFormat<Half>.exponent_bits) - 1)
                                 << kFormat<Half>.fraction_bits;
  for (std::uint32_t bits = 0; bits < infinity; ++bits) {
    const double low = value_of<Half>(bits);
    // Above the largest number the next step would be a power of two, which is infinite.
    const double high =
        bits + 1 < infinity ? value_of<Half>(bits + 1) : 2 * low - value_of<Half>(bits - 1);
    const double tie = (low + high) / 2;
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    for (const double sign : {1.0, -1.0}) {
      const std::uint32_t sign_bit = sign < 0 ? 0x8000U : 0;
      const auto narrow = [&](double x) { return Half(sign * x).bits ^ sign_bit; };
      wrong += narrow(tie) != even || narrow(std::nextafter(tie, 0.0)) != bits ||
               narrow(std::nextafter(tie, HUGE_VAL)) != bits + 1;
      const auto tie32 = static_cast<float>(tie);  // 24 bits hold every tie
      wrong += (Half(static_cast<float>(sign) * tie32).bits ^ sign_bit) != even;
      ++num_ties;
    }
  }
  CHECK(wrong == 0);
  MESSAGE(num_ties << " ties");
}

TEST_CASE("core.half: floats round as in torch 1.13.1, and tensors print as there") {
  std::ifstream file(tests::golden_path("torch_half.txt"));
  REQUIRE(file);
  int num_rounded = 0, num_printed = 0, wrong = 0;
  std::string line, kind, wanted, got;
  const auto compare_printed = [&] {
    CHECK(got == wanted);
    got = wanted = {};
  };
  while (std::getline(file, line)) {
    if (line.starts_with("| ")) {
      wanted += (wanted.empty() ? "" : "\n") + line.substr(2);
      continue;
    }
    compare_printed();
    std::istringstream words(line);
    words >> kind;
    if (kind == "print") {
      got = printed(words);
      ++num_printed;
      continue;
    }
    const float x = float_of(parse_bits(words));
    wrong += BFloat16(x).bits != parse_bits(words);
    wrong += Float16(x).bits != parse_bits(words);
    ++num_rounded;
  }
  compare_printed();
  CHECK(wrong == 0);
  CHECK(num_rounded > 1000);
  CHECK(num_printed == 18);
  MESSAGE(num_rounded << " floats rounded, " << num_printed << " tensors printed");
}

TEST_CASE("core.half: numbers round once, whatever they come from") {
  CHECK(Float16(65519.99).bits == 0x7bff);
  CHECK(Float16(65520.0).bits == 0x7c00);
  CHECK(Float16(-1e300).bits == 0xfc00);
  CHECK(Float16(0x1p-25).bits == 0);
  CHECK(Float16(0x1.000001p-25).bits == 1);
  CHECK(BFloat16(-0.0).bits == 0x8000);
  CHECK(BFloat16(5e-324).bits == 0);
  // 1 + 2^-8 is a tie of bfloat16. By way of a float, what lies 2^-40 above it would be lost.
  CHECK(BFloat16(1 + 0x1p-8 + 0x1p-40).bits == 0x3f81);
  CHECK(BFloat16(1 + 0x1p-8).bits == 0x3f80);
  // The same for integers that no double holds.
  const std::int64_t tie = (std::int64_t{1} << 60) + (std::int64_t{1} << 52);
  CHECK(BFloat16(tie).bits == 0x5d80);
  CHECK(BFloat16(tie + 1).bits == 0x5d81);
  CHECK(BFloat16(-tie - 1).bits == 0xdd81);
  CHECK(BFloat16(-tie + 1).bits == 0xdd80);
  CHECK(BFloat16(true).bits == 0x3f80);
}

TEST_CASE("core.half: tensors of both types copy, view, fill, join and convert") {
  const Tensor x = Tensor::of<float>({{1, 2.5f, -3}, {0.1f, NAN, 1e30f}});
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    const Tensor half = x.to(dtype);
    CHECK(half.dtype() == dtype);
    const std::vector<float> back = half.to(DType::float32).to_vector<float>();
    CHECK(back[1] == 2.5f);
    CHECK(std::isnan(back[4]));
    CHECK(
        (dtype == DType::float16 ? back[5] == HUGE_VALF : std::abs(back[5] / 1e30f - 1) < 0x1p-8f));
    const Tensor turned = half.transpose(0, 1);
    CHECK(equal_bits(turned.contiguous().transpose(0, 1), half));
    CHECK(equal_bits(turned.clone(), turned));
    CHECK(equal_bits(half.to(DType::float64).to(dtype), half));
    CHECK(half.select(0, 0).to(DType::int64).select(0, 1).item<std::int64_t>() == 2);
    CHECK(half.to(DType::boolean).to_vector<bool>() == std::vector<bool>(6, true));
    Tensor copy = Tensor::zeros({2, 3}, dtype);
    copy.slice(1, 0, 3, 2).copy_from(half.slice(1, 0, 3, 2));
    CHECK(equal_bits(copy.select(1, 2), half.select(1, 2)));
    CHECK(copy.select(1, 1).to(DType::float32).to_vector<float>() == std::vector<float>{0, 0});
    CHECK(Tensor::full({2}, 0.5, dtype).to(DType::float64).to_vector<double>() ==
          std::vector<double>{0.5, 0.5});
    CHECK(Tensor::arange(3, dtype).to(DType::int32).to_vector<std::int32_t>() ==
          std::vector<std::int32_t>{0, 1, 2});
    const Tensor parts[] = {half, half};
    CHECK(equal_bits(cat(parts).narrow(0, 2, 2), half));
    CHECK_THROWS_AS(half.select(0, 1).to(DType::int64), ValueError);
    CHECK_THROWS_AS(copy.copy_from(x), DTypeError);
  }
}
