// Elementwise arithmetic on tensor views: one result per element, so threads cannot change bits.
//
// All operands have the result's shape (expand them first; strides may be 0) and its dtype, float32
// or float64. Any layout is right; dense ones are fast. A result may be one of the operands itself
// but must not overlap one in another way.
#pragma once

#include "accrue/core/tensor.h"

#include <cstdint>

namespace accrue::kernels {

/// The functions of unary_ops.def.
enum class UnaryOp : std::uint8_t {
#define ACCRUE_UNARY_OP(name, Formula) name,
#include "accrue/kernels/unary_ops.def"
};

/// `relu`, as unary_ops.def spells it.
const char* name_of(UnaryOp op);
/// What the derivative is computed from, besides dy.
bool backward_reads_x(UnaryOp op);
bool backward_reads_y(UnaryOp op);

/// The numbers that a function takes besides its operand, such as a slope; each is first rounded to
/// the dtype. What they mean is written beside the formula in scalar/unary.h.
struct UnaryParameters {
  double first = 0, second = 0;
};

/// y = op(x).
///
/// Errors:  ShapeError, DTypeError; StateError when elements of y share one location.
struct UnaryForward {
  UnaryOp op;
  const Tensor& x;
  Tensor& y;
  UnaryParameters parameters = {};
};

/// dx = dy * op'(x), where y = op(x). An x or y that the derivative does not read may be undefined.
///
/// Errors:  as UnaryForward.
struct UnaryBackward {
  UnaryOp op;
  const Tensor &x, &y, &dy;
  Tensor& dx;
  UnaryParameters parameters = {};
};

enum class BinaryOp : std::uint8_t { add, sub, mul, div, maximum, minimum };

const char* name_of(BinaryOp op);

/// y = a op b, rounded once. maximum and minimum: a where they are equal, NaN where one is NaN.
///
/// Errors:  as UnaryForward.
struct BinaryForward {
  BinaryOp op;
  const Tensor &a, &b;
  Tensor& y;
};

/// y = a op b for a number b, which is first rounded to the dtype. Division is a true division.
///
/// Errors:  as UnaryForward.
struct ScalarForward {
  BinaryOp op;
  const Tensor& a;
  double b;
  Tensor& y;
};

/// dx = what a gets of the gradient of maximum(a, b): +0 where a < b, dy / 2 where a == b, dy
/// elsewhere, also where one is NaN. For minimum, a and b change places: b is the smaller.
///
/// Errors:  as UnaryForward.
struct LargerBackward {
  static constexpr const char* kName = "larger_backward";
  const Tensor &a, &b, &dy;
  Tensor& dx;
};

/// y = fma(alpha, x, y) with alpha rounded to the dtype.
///
/// Errors:  as UnaryForward.
struct AddScaled {
  static constexpr const char* kName = "add_scaled";
  double alpha;
  const Tensor& x;
  Tensor& y;
};

void launch_cpu(const UnaryForward& args);
void launch_cpu(const UnaryBackward& args);
void launch_cpu(const BinaryForward& args);
void launch_cpu(const ScalarForward& args);
void launch_cpu(const LargerBackward& args);
void launch_cpu(const AddScaled& args);

}  // namespace accrue::kernels
