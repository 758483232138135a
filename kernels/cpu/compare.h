// Loops of comparisons and choices over one run of elements, compiled per instruction set.
#pragma once

#include "accrue/kernels/compare.h"

#include <cstdint>

namespace accrue::kernels {

/// `count` elements; element i of an operand lies i * stride elements after its first.
struct CompareRun {
  DType dtype = DType::float32;  ///< of a and b
  std::int64_t count = 0;
  const void *a = nullptr, *b = nullptr;
  std::int64_t a_stride = 0, b_stride = 0;
  bool* y = nullptr;
  std::int64_t y_stride = 0;
};

struct WhereRun {
  std::int64_t size = 4;  ///< bytes of an element of a, b and y
  std::int64_t count = 0;
  const bool* condition = nullptr;
  const void *a = nullptr, *b = nullptr;
  void* y = nullptr;
  std::int64_t condition_stride = 0, a_stride = 0, b_stride = 0, y_stride = 0;
};

namespace portable {
void compare(CompareOp op, const CompareRun& run);
void where(const WhereRun& run);
}  // namespace portable
namespace avx2 {
void compare(CompareOp op, const CompareRun& run);
void where(const WhereRun& run);
}  // namespace avx2

}  // namespace accrue::kernels
