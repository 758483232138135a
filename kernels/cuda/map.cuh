// Elementwise kernels: each element of the result is a function of the operands' elements there.
#pragma once

#include "accrue/kernels/cuda/each.cuh"
#include "accrue/kernels/elementwise_checks.h"

#include <type_traits>

namespace accrue::kernels::cuda {

/// Operands and the result, which is the last layout. An operand without data is a number.
template <class T, int N>
struct Map {
  Layouts<N + 1> layouts;
  const T* in[N] = {};
  T number[N] = {};
  T* out = nullptr;
  bool has_quads = false;  ///< four elements lie beside each other, or are one, in all operands

  ACCRUE_DEVICE T read(int k, const Offsets<N + 1>& at) const {
    return in[k] == nullptr ? number[k] : in[k][at[k]];
  }
  /// As read(), for four elements of which `count` exist.
  ACCRUE_DEVICE Float4 read_four(int k, const Offsets<N + 1>& at, std::int64_t count) const {
    if (in[k] != nullptr && layouts.stride[k][0] == 1) return read_quad(in[k] + at[k], 0, count);
    const T x = read(k, at);
    return {{x, x, x, x}};
  }
};

template <class F, int N>
ACCRUE_DEVICE void map_quad(const Map<float, N>& map, F f) {
  const std::int64_t i = quad_begin(), count = map.layouts.count - i;
  if (count <= 0) return;
  const Offsets<N + 1> at = map.layouts.offsets(i);
  Float4 in[N], out;
  ACCRUE_UNROLL
  for (int k = 0; k < N; ++k) in[k] = map.read_four(k, at, count);
  ACCRUE_UNROLL
  for (int c = 0; c < kQuad; ++c) {
    float values[N];
    ACCRUE_UNROLL
    for (int k = 0; k < N; ++k) values[k] = in[k].v[c];
    out.v[c] = f(values);
  }
  write_quad(map.out + at[N], 0, count, out);
}

/// Writes f(in) for each element, where in[k] is that of operand k. A thread reads what it needs
/// for an element before it writes there, so the result may be an operand.
template <class T, int N, class F>
ACCRUE_KERNEL(kQuadThreads)
void map_kernel(ACCRUE_PARAMETER Map<T, N> map, F f) {
  if constexpr (std::is_same_v<T, float>) {
    if (map.has_quads) return map_quad(map, f);
  }
  for_own_elements(map.layouts.count, [&](std::int64_t i) {
    const Offsets<N + 1> at = map.layouts.offsets(i);
    T values[N];
    ACCRUE_UNROLL
    for (int k = 0; k < N; ++k) values[k] = map.read(k, at);
    map.out[at[N]] = f(values);
  });
}

/// What a map reads: a tensor, or a number for every element.
struct Operand {
  const Tensor* tensor = nullptr;
  double number = 0.0;

  Operand(const Tensor& x) : tensor(&x) {}
  Operand(double x) : number(x) {}
};

/// Errors:  ShapeError, DTypeError.
template <int N>
void check_map(const char* name, const Tensor& out, const Operand (&operands)[N]) {
  visit_floating(out.dtype(), name, [](auto) {});
  for (const Operand& operand : operands) {
    if (operand.tensor != nullptr) check_operand(name, *operand.tensor, out.shape(), out.dtype());
  }
}

/// Whether rows of the innermost dimension fall into quads that read_four() and write_quad() take.
template <int N>
bool has_quads(const Layouts<N>& layouts) {
  bool fits = layouts.rank <= 1 || layouts.size[0] % kQuad == 0;
  for (int n = 0; n < N; ++n) {
    const std::int64_t stride = layouts.stride[n][0];
    fits = fits && (stride == 1 || (stride == 0 && n < N - 1) || layouts.count == 1);
  }
  return fits;
}

/// Writes f of the operands' elements to `out`.
template <class T, int N, class F>
void launch_map(const char* name, Tensor& out, const Operand (&operands)[N], F f, Stream stream) {
  Map<T, N> map;
  std::array<Shape, N + 1> strides;
  strides.fill(out.strides());
  for (std::size_t k = 0; k < N; ++k) {
    const Tensor* const tensor = operands[k].tensor;
    map.number[k] = static_cast<T>(operands[k].number);
    if (tensor == nullptr) continue;
    map.in[k] = tensor->data<T>();
    strides[k] = tensor->strides();
  }
  map.layouts = Layouts<N + 1>(out.shape(), strides);
  map.has_quads = has_quads(map.layouts);
  map.out = out.mutable_data<T>();
  if (out.numel() == 0) return;
  launch(quad_launch(name, out.numel(), stream), map_kernel<T, N, F>, map, f);
}

}  // namespace accrue::kernels::cuda
