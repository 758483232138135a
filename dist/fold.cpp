#include "accrue/dist/fold.h"

#include "accrue/kernels/cpu/float_mode.h"

#include <type_traits>

namespace accrue::dist {
namespace {

template <class T>
T sum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a + b;
  } else {  // unsigned: wraps instead of undefined behaviour
    using U = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  }
}

/// Written so that a NaN on either side stays.
template <class T>
T larger(T a, T b) {
  return a > b || a != a ? a : b;
}

template <class T>
T smaller(T a, T b) {
  return a < b || a != a ? a : b;
}

template <class T, class Combine>
void fold_as(std::span<std::byte* const> parts, std::int64_t count, const Combine& combine) {
  for (std::size_t step = 1; step < parts.size(); step *= 2) {
    for (std::size_t i = 0; i + step < parts.size(); i += 2 * step) {
      T* left = reinterpret_cast<T*>(parts[i]);
      const T* right = reinterpret_cast<const T*>(parts[i + step]);
      for (std::int64_t j = 0; j < count; ++j) left[j] = combine(left[j], right[j]);
    }
  }
}

}  // namespace

void check_foldable(DType dtype, ReduceOp op, const char* operation) {
  ACCRUE_CHECK(dtype != DType::bfloat16 && dtype != DType::float16,
               DTypeError,
               operation,
               "cannot reduce ",
               dtype,
               ", which is for storage; convert with to()");
  ACCRUE_CHECK(dtype != DType::boolean || op != ReduceOp::sum,
               DTypeError,
               operation,
               "cannot sum bool; use max for any, min for all, or convert with to()");
}

void fold(std::span<std::byte* const> parts, std::int64_t count, DType dtype, ReduceOp op) {
  const kernels::DefaultFloats floats;
  visit_dtype(dtype, [&]<class T>(T) {
    if constexpr (std::is_arithmetic_v<T>) {
      if (op == ReduceOp::max) {
        fold_as<T>(parts, count, larger<T>);
      } else if (op == ReduceOp::min) {
        fold_as<T>(parts, count, smaller<T>);
      } else if constexpr (!std::is_same_v<T, bool>) {
        fold_as<T>(parts, count, sum<T>);
      }
    }
  });
}

}  // namespace accrue::dist
