// The search in one row: the value in one pass that vectorises, then its first place.
#include "accrue/core/sum_order.h"
#include "accrue/kernels/cpu/extremum.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

/// The first j with hits(j), which exists; blocks without one are passed over quickly.
template <class Hits>
ACCRUE_HD std::int64_t first_of(std::int64_t count, Hits hits) {
  constexpr std::int64_t kBlock = 64;
  std::int64_t begin = 0;
  for (; begin + kBlock <= count; begin += kBlock) {
    int any = 0;
    for (std::int64_t i = 0; i < kBlock; ++i) any |= hits(begin + i);
    if (any) break;
  }
  while (!hits(begin)) ++begin;
  return begin;
}

template <class T>
std::int64_t find(const T* x, std::int64_t count, bool largest) {
  const T best = largest ? max_in_order<T>(count, [x](std::int64_t j) { return x[j]; })
                         : -max_in_order<T>(count, [x](std::int64_t j) { return -x[j]; });
  if (best != best) return first_of(count, [x](std::int64_t j) { return int{x[j] != x[j]}; });
  return first_of(count, [x, best](std::int64_t j) { return int{x[j] == best}; });
}

}  // namespace

std::int64_t find_extremum(const float* x, std::int64_t count, bool largest) {
  return find(x, count, largest);
}
std::int64_t find_extremum(const double* x, std::int64_t count, bool largest) {
  return find(x, count, largest);
}

}  // namespace accrue::kernels::ACCRUE_ISA
