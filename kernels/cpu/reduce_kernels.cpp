// Sums of columns: the summation order of core/sum_order.h on groups of neighbouring columns.
#include "accrue/core/sum_order.h"
#include "accrue/kernels/cpu/reduce.h"
#include "accrue/kernels/cpu/vec.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

/// A value for each of kSize neighbouring columns; adds like a number.
template <class T, int kVectors>
struct Columns {
  static constexpr std::int64_t kLanes = 32 / sizeof(T), kSize = kVectors * kLanes;
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

/// The sums of columns [first, first + count), count <= kSize, of the elements or their squares.
template <class T, int kVectors, bool kSquares>
void sum_group(const ColumnSums<T>& args, std::int64_t first, std::int64_t count) {
  using Group = Columns<T, kVectors>;
  using Vector = typename Group::Vector;
  const T* const x = args.x + first;
  const std::int64_t stride = args.row_stride;
  const auto add = [](Group acc, const Group& values) {
    for (int k = 0; k < kVectors; ++k)
      acc.v[k] += kSquares ? values.v[k] * values.v[k] : values.v[k];
    return acc;
  };
  Group sum;
  if (count == Group::kSize) {
    sum = accumulate_in_order<Group>(args.num_rows, [=](Group acc, std::int64_t row) {
      const auto* const from = reinterpret_cast<const Unaligned<Vector>*>(x + row * stride);
      if constexpr (kVectors > 1) {  // rows lie further apart than processors look ahead
        constexpr std::int64_t kAhead = 16;
        __builtin_prefetch(x + (row + kAhead) * stride);
        __builtin_prefetch(x + (row + kAhead) * stride + Group::kSize / 2);
      }
      Group values;
      for (int k = 0; k < kVectors; ++k) values.v[k] = from[k].value;
      return add(acc, values);
    });
  } else {
    sum = accumulate_in_order<Group>(args.num_rows, [=](Group acc, std::int64_t row) {
      Group values(0);
      for (std::int64_t c = 0; c < count; ++c)
        values.v[c / Group::kLanes][c % Group::kLanes] = x[row * stride + c];
      return add(acc, values);
    });
  }
  for (std::int64_t c = 0; c < count; ++c)
    args.sums[first + c] = sum.v[c / Group::kLanes][c % Group::kLanes];
}

/// Two cache lines of columns at a time, so that each line is read once; then what is left.
template <class T, bool kSquares>
void sum_groups(const ColumnSums<T>& args, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kWide = Columns<T, 4>::kSize, kNarrow = Columns<T, 1>::kSize;
  for (; end - begin >= kWide; begin += kWide) sum_group<T, 4, kSquares>(args, begin, kWide);
  for (; begin < end; begin += kNarrow) {
    sum_group<T, 1, kSquares>(args, begin, end - begin < kNarrow ? end - begin : kNarrow);
  }
}

template <class T>
void sum(const ColumnSums<T>& args, std::int64_t begin, std::int64_t end) {
  return args.squares ? sum_groups<T, true>(args, begin, end)
                      : sum_groups<T, false>(args, begin, end);
}

}  // namespace

void sum_columns(const ColumnSums<float>& args, std::int64_t begin, std::int64_t end) {
  sum(args, begin, end);
}
void sum_columns(const ColumnSums<double>& args, std::int64_t begin, std::int64_t end) {
  sum(args, begin, end);
}

}  // namespace accrue::kernels::ACCRUE_ISA
