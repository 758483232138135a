// Sums of columns: the summation order of core/sum_order.h on groups of neighbouring columns.
#include "accrue/core/sum_order.h"
#include "accrue/kernels/cpu/reduce.h"

#include <cstring>

namespace accrue::kernels::ACCRUE_ISA {
namespace {

/// A value for each of kSize neighbouring columns; adds like a number.
template <class T>
struct Columns {
  static constexpr std::int64_t kSize = 32 / sizeof(T);
  typedef T Vector __attribute__((vector_size(32)));
  Vector v = {};

  Columns() = default;
  explicit ACCRUE_HD Columns(Vector values) : v(values) {}
  explicit ACCRUE_HD Columns(int value) : v(Vector{} + static_cast<T>(value)) {}
  ACCRUE_HD Columns operator+(const Columns& other) const { return Columns(v + other.v); }
};

/// The sums of columns [first, first + count), count <= kSize.
template <class T>
void sum_group(const ColumnSums<T>& args, std::int64_t first, std::int64_t count) {
  using Group = Columns<T>;
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
      Group values;
      for (std::int64_t c = 0; c < count; ++c) values.v[c] = x[row * stride + c];
      return acc + values;
    });
  }
  for (std::int64_t c = 0; c < count; ++c) args.sums[first + c] = sum.v[c];
}

template <class T>
void sum_groups(const ColumnSums<T>& args, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kSize = Columns<T>::kSize;
  for (std::int64_t first = begin; first < end; first += kSize) {
    sum_group(args, first, end - first < kSize ? end - first : kSize);
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
