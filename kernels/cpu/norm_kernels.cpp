// The loops under norm.h.
#include "accrue/core/sum_order.h"
#include "accrue/kernels/cpu/norm.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

template <class T>
double block_square_sum_of(const T* x, std::int64_t count) {
  return accumulate_block<double>(0, count, [x](double acc, std::int64_t j) {
    const double value = x[j];
    return acc + value * value;
  });
}

template <class T>
T max_abs_of(const T* x, std::int64_t count) {
  return max_in_order<T>(count, [x](std::int64_t j) { return x[j] < T(0) ? -x[j] : x[j]; });
}

template <class T>
std::int64_t count_nonfinite_of(const T* x, std::int64_t count) {
  std::int64_t nonfinite = 0;
  for (std::int64_t i = 0; i < count; ++i) nonfinite += x[i] - x[i] != T(0);
  return nonfinite;
}

}  // namespace

double block_square_sum(const float* x, std::int64_t count) {
  return block_square_sum_of(x, count);
}
double block_square_sum(const double* x, std::int64_t count) {
  return block_square_sum_of(x, count);
}
double max_abs(const float* x, std::int64_t count) { return max_abs_of(x, count); }
double max_abs(const double* x, std::int64_t count) { return max_abs_of(x, count); }
std::int64_t count_nonfinite(const float* x, std::int64_t count) {
  return count_nonfinite_of(x, count);
}
std::int64_t count_nonfinite(const double* x, std::int64_t count) {
  return count_nonfinite_of(x, count);
}

}  // namespace accrue::kernels::ACCRUE_ISA
