// gradcheck: compares an operation's gradients with differences of its values.
#pragma once

#include "accrue/autograd/variable.h"

#include <functional>
#include <span>

namespace accrue {

struct GradcheckOptions {
  double rtol = 1e-8;
  double atol = 1e-10;
  double step = 1e-3;  ///< relative to max(1, |x|)
};

/// Checks every partial derivative of `function` at `inputs`.
///
/// The numeric derivative is the five-point difference (f(x-2h) - 8 f(x-h) + 8 f(x+h) - f(x+2h)) /
/// 12h in float64; the analytic one is a backward pass per output element. An element passes when
/// |analytic - numeric| <= atol + rtol * |numeric|.
///
/// Shapes:  `inputs` dense float64 leaves of any shape; the result has any shape.
/// Returns: the number of derivatives compared.
/// Errors:  ValueError with the input, element and both numbers for the first that differs;
///          DTypeError unless float64.
std::int64_t gradcheck(const std::function<Variable(std::span<const Variable>)>& function,
                       std::span<const Tensor> inputs,
                       const GradcheckOptions& options = {});

}  // namespace accrue
