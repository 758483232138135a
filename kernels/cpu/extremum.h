// The search in one row, compiled per instruction set.
#pragma once

#include <cstdint>

namespace accrue::kernels {

// The place of the first largest (smallest) of `count` > 0 elements; of the first NaN if there is
// one.
namespace portable {
std::int64_t find_extremum(const float* x, std::int64_t count, bool largest);
std::int64_t find_extremum(const double* x, std::int64_t count, bool largest);
}  // namespace portable
namespace avx2 {
std::int64_t find_extremum(const float* x, std::int64_t count, bool largest);
std::int64_t find_extremum(const double* x, std::int64_t count, bool largest);
}  // namespace avx2

}  // namespace accrue::kernels
