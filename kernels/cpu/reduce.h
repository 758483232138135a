// Sums of columns, compiled per instruction set.
#pragma once

#include <cstdint>

namespace accrue::kernels {

/// sums[c] = x[c] + x[row_stride + c] + ... over `num_rows` rows, in the order of core/sum_order.h.
template <class T>
struct ColumnSums {
  const T* x = nullptr;
  std::int64_t row_stride = 0, num_rows = 0;
  T* sums = nullptr;
  bool squares = false;  ///< sums the squares of the elements
};

// Columns [begin, end).
namespace portable {
void sum_columns(const ColumnSums<float>& args, std::int64_t begin, std::int64_t end);
void sum_columns(const ColumnSums<double>& args, std::int64_t begin, std::int64_t end);
}  // namespace portable
namespace avx2 {
void sum_columns(const ColumnSums<float>& args, std::int64_t begin, std::int64_t end);
void sum_columns(const ColumnSums<double>& args, std::int64_t begin, std::int64_t end);
}  // namespace avx2

}  // namespace accrue::kernels
