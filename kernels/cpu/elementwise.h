// Elementwise loops over one run of elements, compiled per instruction set.
#pragma once

#include "accrue/kernels/elementwise.h"

#include <cstdint>

namespace accrue::kernels {

/// `count` elements of the result and of up to three operands: element i of operand k lies
/// i * in_stride[k] elements after in[k].
struct MapRun {
  DType dtype = DType::float32;  ///< of all operands; float32 or float64
  std::int64_t count = 0;
  void* out = nullptr;
  std::int64_t out_stride = 0;
  const void* in[3] = {};
  std::int64_t in_stride[3] = {};
};

// Operands: unary_forward x; unary_backward dy, x, y; binary a, b; larger_backward dy, a, b;
// fused_multiply_add a, b, c.
namespace portable {
void unary_forward(UnaryOp op, const UnaryParameters& parameters, const MapRun& run);
void unary_backward(UnaryOp op, const UnaryParameters& parameters, const MapRun& run);
void binary(BinaryOp op, const MapRun& run);
void larger_backward(const MapRun& run);
void fused_multiply_add(const MapRun& run);
}  // namespace portable
namespace avx2 {
void unary_forward(UnaryOp op, const UnaryParameters& parameters, const MapRun& run);
void unary_backward(UnaryOp op, const UnaryParameters& parameters, const MapRun& run);
void binary(BinaryOp op, const MapRun& run);
void larger_backward(const MapRun& run);
void fused_multiply_add(const MapRun& run);
}  // namespace avx2
namespace avx512 {
void unary_forward(UnaryOp op, const UnaryParameters& parameters, const MapRun& run);
void unary_backward(UnaryOp op, const UnaryParameters& parameters, const MapRun& run);
void binary(BinaryOp op, const MapRun& run);
void larger_backward(const MapRun& run);
void fused_multiply_add(const MapRun& run);
}  // namespace avx512

}  // namespace accrue::kernels
