// Sums of columns: the summation order of core/sum_order.h on groups of neighbouring columns.
#include "accrue/core/sum_order.h"
#include "accrue/kernels/cpu/reduce.h"

#include <cstring>

namespace accrue::kernels::ACCRUE_ISA {
namespace {

/// A value for each of kSize neighbouring columns; adds like a number.
template <class T, int kVectors>
struct Columns {
  static constexpr std::int64_t kSize = kVectors * 32 / sizeof(T);
  typedef T Vector __attribute__((vector_size(32)));
  Vector v[kVectors];

  Columns() = default;
  explicit ACCRUE_HD Columns(int value) {
    for (Vector& values : v) values = Vector{} + static_cast<T>(value);
  }
  ACCRUE_HD Columns operator+(const Columns& other) const {
    Columns sum;
    for (int k = 0; k < kVectors; ++k) sum.v[k] = v[k] + other.v[k];
    return sum;
  }
};

/// The sums of columns [first, first + count), count <= kSize.
template <class T, int kVectors>
void sum_group(const ColumnSums<T>& args, std::int64_t first, std::int64_t count) {
  using Group = Columns<T, kVectors>;
  const T* const x = args.x + first;
  const std::int64_t stride = args.row_stride;
  Group sum;
  if (count == Group::kSize) {
    sum = accumulate_in_order<Group>(args.num_rows, [=](Group acc, std::int64_t row) {
      Group values;
      std::memcpy(&values.v, x + row * stride, sizeof values.v);
      return acc + values;
    });
  } else {
    sum = accumulate_in_order<Group>(args.num_rows, [=](Group acc, std::int64_t row) {
      Group values(0);
      std::memcpy(&values.v, x + row * stride, static_cast<std::size_t>(count) * sizeof(T));
      return acc + values;
    });
  }
  std::memcpy(args.sums + first, &sum.v, static_cast<std::size_t>(count) * sizeof(T));
}

/// Two cache lines of columns at a time, so that each line is read once; then what is left.
template <class T>
void sum_groups(const ColumnSums<T>& args, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kWide = Columns<T, 4>::kSize, kNarrow = Columns<T, 1>::kSize;
  for (; end - begin >= kWide; begin += kWide) sum_group<T, 4>(args, begin, kWide);
  for (; begin < end; begin += kNarrow) {
    sum_group<T, 1>(args, begin, end - begin < kNarrow ? end - begin : kNarrow);
  }
}

}  // namespace

void sum_columns(const ColumnSums<float>& args, std::int64_t begin, std::int64_t end) {
  sum_groups(args, begin, end);
}
void sum_columns(const ColumnSums<double>& args, std::int64_t begin, std::int64_t end) {
  sum_groups(args, begin, end);
}

}  // namespace accrue::kernels::ACCRUE_ISA
