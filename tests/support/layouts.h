// Random tensors in every memory layout a kernel may meet.
#pragma once

#include "accrue/core/tensor.h"

#include <cmath>
#include <random>

namespace accrue::test {

enum class Layout {
  contiguous,
  transposed,   ///< dense, dimensions in reverse order
  interleaved,  ///< every second element of a row; a NaN between two elements
  expanded,     ///< the first dimension has stride 0 (its values repeat)
};
inline constexpr Layout kLayouts[] = {
    Layout::contiguous, Layout::transposed, Layout::interleaved, Layout::expanded};
/// Those whose elements have a location each, so that results can be written there.
inline constexpr Layout kWritableLayouts[] = {
    Layout::contiguous, Layout::transposed, Layout::interleaved};

inline Tensor reversed(const Tensor& x) {
  std::vector<int> order;
  for (int d = x.rank() - 1; d >= 0; --d) order.push_back(d);
  return x.permute(order);
}

/// The values of `x` in another layout; `expanded` repeats the values at index 0 of dimension 0.
inline Tensor with_layout(const Tensor& x, Layout layout) {
  if (x.rank() == 0 && layout != Layout::interleaved) return x.clone();
  switch (layout) {
    case Layout::contiguous:
      return x.clone();
    case Layout::transposed:
      return reversed(reversed(x).clone());
    case Layout::interleaved: {
      const Tensor flat = x.rank() == 0 ? x.unsqueeze(0) : x;
      Shape wide = flat.shape();
      wide[wide.rank() - 1] *= 2;
      Tensor base = Tensor::full(wide, std::nan(""), x.dtype(), x.device());
      Tensor result = base.slice(-1, 0, wide.back(), 2);
      result.copy_from(flat);
      return x.rank() == 0 ? result[0] : result;
    }
    case Layout::expanded:
      return x.size(0) == 0 ? x.clone() : x.narrow(0, 0, 1).clone().expand(x.shape());
  }
  return x;
}

/// Values of many magnitudes; with `special`, one in eight is a zero of either sign, an infinity, a
/// NaN or subnormal.
template <class T>
Tensor random_tensor(const Shape& shape, std::mt19937_64& random, bool special = false) {
  constexpr T kSpecial[] = {T(0), T(-0.0), T(HUGE_VAL), T(-HUGE_VAL), T(NAN), T(1e-310), T(1e-40)};
  Tensor result = Tensor::empty(shape, dtype_of<T>);
  T* out = result.mutable_data<T>();
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    const auto pick = random();
    const double magnitude = std::exp2(static_cast<double>(pick % 16) - 8.0);
    out[i] = special && pick / 16 % 8 == 0 ? kSpecial[pick / 128 % std::size(kSpecial)]
                                           : static_cast<T>(uniform(random) * magnitude);
  }
  return result;
}

}  // namespace accrue::test
