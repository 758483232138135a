// erf: the error function in explicit IEEE operations.
#pragma once

#include "accrue/core/host_device.h"
#include "accrue/kernels/scalar/exp.h"
#include "accrue/kernels/scalar/float_ops.h"

#include <cmath>

namespace accrue::kernels::scalar {

/// erf x, at most 1.09 ulp off.
///
/// erf(NaN) = NaN, erf(+-inf) = +-1, erf(+-0) = +-0; right for subnormals. Odd polynomial below
/// 0.921875, 1 - exp(-G(|x|)) with a polynomial G below 3.93, then +-1.
ACCRUE_HD float erf(float x) {
  const float a = absolute(x);
  const float z = a * a;
  float p = 0x1.4f361p-14f;
  p = fma(p, z, -0x1.a6004cp-11f);
  p = fma(p, z, 0x1.54497cp-8f);
  p = fma(p, z, -0x1.b80114p-6f);
  p = fma(p, z, 0x1.ce2d64p-4f);
  p = fma(p, z, -0x1.81274p-2f);
  p = fma(p, z, 0x1.06eba8p-3f);
  const float small = fma(a, p, a);
  float g = 0x1.0dc512p-21f;
  g = fma(g, a, 0x1.e8fe5ap-17f);
  g = fma(g, a, -0x1.a191c2p-12f);
  g = fma(g, a, 0x1.09f94ep-8f);
  g = fma(g, a, -0x1.980bdcp-6f);
  g = fma(g, a, 0x1.ba77dap-4f);
  g = fma(g, a, 0x1.445e8cp-1f);
  g = fma(g, a, 0x1.2122dep+0f);
  g = fma(g, a, -0x1.5204fap-13f);
  const float middle = 1.0f - exp(-g);
  const float positive = select(a < 0.921875f, small, select(a >= 3.93f, 1.0f, middle));
  return with_sign_of(positive, x);
}

/// The C library's; for gradient checks, outside the contract.
ACCRUE_HD double erf(double x) { return std::erf(x); }

}  // namespace accrue::kernels::scalar
