#include "accrue/optim/clip.h"

#include "accrue/kernels/elementwise.h"
#include "accrue/kernels/launch.h"
#include "accrue/kernels/norm.h"
#include "accrue/optim/gradients.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace accrue::optim {
namespace {

double norm_of(std::span<const Gradient> gradients, double norm_type) {
  double total = 0;
  for_each_device(gradients, [&](Device device, auto tensors, std::size_t) {
    if (norm_type == 2) {
      total = kernels::launch(device, kernels::SquareSum{tensors, total});
    } else {
      const double largest = kernels::launch(device, kernels::MaxAbs{tensors});
      total = largest > total || std::isnan(largest) ? largest : total;
    }
  });
  return norm_type == 2 ? std::sqrt(total) : total;
}

void scale(Tensor gradient, double factor) {
  kernels::launch(gradient.device(),
                  kernels::ScalarForward{kernels::BinaryOp::mul, gradient, factor, gradient});
}

}  // namespace

double clip_grad_norm(const ParameterList& parameters, double max_norm, double norm_type) {
  constexpr const char* kName = "clip_grad_norm";
  ACCRUE_CHECK(max_norm >= 0, ValueError, kName, "max_norm must be >= 0, got ", max_norm);
  ACCRUE_CHECK(norm_type == 2 || norm_type == HUGE_VAL,
               ValueError,
               kName,
               "norm_type must be 2 or infinity, got ",
               norm_type);
  parameters.check_distinct(kName);
  const std::vector<Gradient> gradients = gradients_of(parameters);
  const double norm = norm_of(gradients, norm_type);
  if (!std::isfinite(norm)) check_finite(parameters, gradients, kName);
  ACCRUE_CHECK(std::isfinite(norm),
               StateError,
               kName,
               "the sum of squares must be finite, got an overflow of float64; lower the loss");
  const double coefficient = max_norm / (norm + 1e-6);
  if (coefficient >= 1) return norm;
  for (const auto& [position, gradient] : writable(parameters, gradients)) {
    double rest = coefficient;
    for (; rest > 0 && rest < std::numeric_limits<float>::min(); rest *= 0x1p64) {
      scale(gradient, 0x1p-64);
    }
    scale(gradient, rest);
  }
  return norm;
}

void clip_grad_value(const ParameterList& parameters, double value) {
  constexpr const char* kName = "clip_grad_value";
  ACCRUE_CHECK(value >= 0, ValueError, kName, "value must be >= 0, got ", value);
  const std::vector<Gradient> gradients = gradients_of(parameters);
  check_finite(parameters, gradients, kName);
  for (Gradient& gradient : writable(parameters, gradients)) {
    Tensor& dense = gradient.value;
    kernels::launch(dense.device(),
                    kernels::UnaryForward{kernels::UnaryOp::clamp, dense, dense, {-value, value}});
  }
}

}  // namespace accrue::optim
