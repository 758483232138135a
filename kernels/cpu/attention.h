// The parts of attention that are compiled per instruction set.
#pragma once

#include "accrue/kernels/matrix.h"

namespace accrue::kernels {

/// acc(r, c) continues a chain over k of fma(a(r, k), b(k, c), acc(r, c)), k ascending in [0, r] if
/// lower, else in [r, rows of a).
///
/// Shapes:  a [R, R], b [R, C], acc [R, C] with col_stride 1.
template <class T>
struct TriangleProduct {
  Matrix<const T> a, b;
  Matrix<T> acc;
  bool lower = true;
};

namespace portable {
void triangle_product(const TriangleProduct<float>& args);
void triangle_product(const TriangleProduct<double>& args);
}  // namespace portable
namespace avx2 {
void triangle_product(const TriangleProduct<float>& args);
void triangle_product(const TriangleProduct<double>& args);
}  // namespace avx2

}  // namespace accrue::kernels
