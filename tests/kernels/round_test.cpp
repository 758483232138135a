// Rounding to half precision: the bits of the storage types, for floats and doubles of all sizes.
#include "accrue/kernels/scalar/round.h"

#include "accrue/core/half.h"
#include "accrue/tests/support/doctest.h"

#include <bit>
#include <random>

using namespace accrue;
namespace scalar = accrue::kernels::scalar;

namespace {

/// Whether both functions give the bits of the storage types; NaNs are all the same.
template <class T>
bool agrees(T x) {
  const auto same = [](T a, T b) { return canonical_bits(a) == canonical_bits(b); };
  return same(scalar::round_to_bfloat16(x), static_cast<T>(BFloat16(x))) &&
         same(scalar::round_to_float16(x), static_cast<T>(Float16(x)));
}

}  // namespace

TEST_CASE("kernels.round: floats over all exponents round as the storage types do") {
  std::int64_t count = 0, wrong = 0;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 1009, ++count)
    wrong += !agrees(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  // Each half, the ties between neighbours, and what lies beside a tie.
  for (std::uint32_t half = 0; half < 65536; ++half) {
    const auto narrow = static_cast<std::uint16_t>(half);
    for (const float value : {static_cast<float>(BFloat16::from_bits(narrow)),
                              static_cast<float>(Float16::from_bits(narrow))}) {
      for (const std::uint32_t step :
           {0U, 1U, 0xfffU, 0x1000U, 0x1001U, 0x7fffU, 0x8000U, 0x8001U}) {
        wrong += !agrees(std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) + step));
        ++count;
      }
    }
  }
  MESSAGE(count, " floats");
  CHECK(wrong == 0);
}

TEST_CASE("kernels.round: doubles round once, not by way of a float") {
  std::mt19937_64 random(1);
  std::int64_t wrong = 0;
  for (int i = 0; i < 1000000; ++i) {
    wrong += !agrees(std::bit_cast<double>(random()));
    // Around the exponents of both formats, close to ties.
    const double near =
        static_cast<float>(Float16::from_bits(static_cast<std::uint16_t>(random())));
    wrong += !agrees(near * (1 + 0x1p-11) + near * 0x1p-40 * static_cast<double>(random() % 3));
  }
  CHECK(wrong == 0);
}
