// The loops under norm.h over contiguous elements, compiled per instruction set.
#pragma once

#include <cstdint>

namespace accrue::kernels {

// block_square_sum: one block of core/sum_order.h, so count <= kSumBlock.
// max_abs: -inf for count = 0. count_nonfinite: NaNs and infinities.
namespace portable {
double block_square_sum(const float* x, std::int64_t count);
double block_square_sum(const double* x, std::int64_t count);
double max_abs(const float* x, std::int64_t count);
double max_abs(const double* x, std::int64_t count);
std::int64_t count_nonfinite(const float* x, std::int64_t count);
std::int64_t count_nonfinite(const double* x, std::int64_t count);
}  // namespace portable
namespace avx2 {
double block_square_sum(const float* x, std::int64_t count);
double block_square_sum(const double* x, std::int64_t count);
double max_abs(const float* x, std::int64_t count);
double max_abs(const double* x, std::int64_t count);
std::int64_t count_nonfinite(const float* x, std::int64_t count);
std::int64_t count_nonfinite(const double* x, std::int64_t count);
}  // namespace avx2

}  // namespace accrue::kernels
