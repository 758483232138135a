// What the arguments of kernels/compare.h must fulfil on every device.
#pragma once

#include "accrue/kernels/compare.h"
#include "accrue/kernels/elementwise_checks.h"

namespace accrue::kernels {

inline void check_arguments(const Compare& args) {
  const char* const name = name_of(args.op);
  ACCRUE_CHECK(size_of(args.a.dtype()) != 2,
               DTypeError,
               name,
               "compares no stored halves, got ",
               args.a.dtype(),
               "; convert with to()");
  check_operand(name, args.y, args.y.shape(), DType::boolean);
  check_operand(name, args.a, args.y.shape(), args.a.dtype());
  check_operand(name, args.b, args.y.shape(), args.a.dtype());
}

inline void check_arguments(const Where& args) {
  check_operand(Where::kName, args.condition, args.y.shape(), DType::boolean);
  check_operand(Where::kName, args.a, args.y.shape(), args.y.dtype());
  check_operand(Where::kName, args.b, args.y.shape(), args.y.dtype());
}

}  // namespace accrue::kernels
