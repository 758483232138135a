// The triangle on the diagonal of causal attention, where rows see keys of different number.
#include "accrue/kernels/cpu/attention.h"
#include "accrue/kernels/scalar/float_ops.h"

#include <cstdint>

namespace accrue::kernels::ACCRUE_ISA {
namespace {

constexpr std::int64_t kWidth = 32;  // columns in registers

/// Columns [col, col + width) of row r.
template <class T>
ACCRUE_HD void chain(const TriangleProduct<T>& args,
                     std::int64_t r,
                     std::int64_t col,
                     std::int64_t width) {
  const std::int64_t begin = args.lower ? 0 : r, end = args.lower ? r + 1 : args.a.rows;
  const bool dense = args.b.col_stride == 1;
  T* const out = args.acc.data + r * args.acc.row_stride + col;
  T acc[kWidth];
  for (std::int64_t c = 0; c < width; ++c) acc[c] = out[c];
  for (std::int64_t k = begin; k < end; ++k) {
    const T x = args.a(r, k);
    const T* const b = args.b.data + k * args.b.row_stride + col * args.b.col_stride;
    if (dense) {
      for (std::int64_t c = 0; c < width; ++c) acc[c] = scalar::fma(x, b[c], acc[c]);
    } else {
      for (std::int64_t c = 0; c < width; ++c) {
        acc[c] = scalar::fma(x, b[c * args.b.col_stride], acc[c]);
      }
    }
  }
  for (std::int64_t c = 0; c < width; ++c) out[c] = acc[c];
}

template <class T>
void run(const TriangleProduct<T>& args) {
  for (std::int64_t r = 0; r < args.acc.rows; ++r) {
    std::int64_t col = 0;
    for (; col + kWidth <= args.acc.cols; col += kWidth) chain(args, r, col, kWidth);
    if (col < args.acc.cols) chain(args, r, col, args.acc.cols - col);
  }
}

}  // namespace

void triangle_product(const TriangleProduct<float>& args) { run(args); }
void triangle_product(const TriangleProduct<double>& args) { run(args); }

}  // namespace accrue::kernels::ACCRUE_ISA
