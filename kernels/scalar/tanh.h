// tanh: hyperbolic tangent in explicit IEEE operations.
#pragma once

#include "accrue/core/host_device.h"
#include "accrue/kernels/scalar/exp.h"
#include "accrue/kernels/scalar/float_ops.h"

#include <cmath>

namespace accrue::kernels::scalar {

/// tanh x, at most 1.47 ulp off.
///
/// tanh(NaN) = NaN, tanh(+-inf) = +-1, tanh(+-0) = +-0; tiny x comes back unchanged, subnormals
/// too. Odd polynomial below 0.55, 1 - 2 / (e^(2|x|) + 1) above.
ACCRUE_HD float tanh(float x) {
  const float a = absolute(x);
  const float z = a * a;
  float p = -0x1.9a441ep-8f;
  p = fma(p, z, 0x1.590fc6p-6f);
  p = fma(p, z, -0x1.b92268p-5f);
  p = fma(p, z, 0x1.110cfcp-3f);
  p = fma(p, z, -0x1.55554ap-2f);
  const float small = fma(a * z, p, a);
  const float large = 1.0f - 2.0f / (exp(a + a) + 1.0f);
  return with_sign_of(select(a < 0.55f, small, large), x);
}

/// The C library's; for gradient checks, outside the contract.
ACCRUE_HD double tanh(double x) { return std::tanh(x); }

}  // namespace accrue::kernels::scalar
