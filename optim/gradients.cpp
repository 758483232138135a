#include "accrue/optim/gradients.h"

#include "accrue/kernels/launch.h"
#include "accrue/kernels/norm.h"

namespace accrue::optim {
namespace {

/// The indices of row-major element `position`.
Shape indices_of(std::int64_t position, const Shape& shape) {
  Shape indices = shape;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    indices[dim] = position % shape[dim];
    position /= shape[dim];
  }
  return indices;
}

}  // namespace

std::vector<Gradient> gradients_of(const ParameterList& parameters) {
  std::vector<Gradient> gradients;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].requires_grad()) continue;
    Tensor gradient = parameters[i].grad();
    if (gradient.defined()) gradients.push_back({i, std::move(gradient)});
  }
  return gradients;
}

std::vector<Gradient> writable(const ParameterList& parameters, std::vector<Gradient> gradients) {
  for (auto& [position, gradient] : gradients) {
    if (gradient.is_contiguous()) continue;
    gradient = gradient.contiguous();
    Variable parameter = parameters[position];
    parameter.set_grad(gradient);
  }
  return gradients;
}

void check_finite(const ParameterList& parameters,
                  std::span<const Gradient> gradients,
                  const char* operation) {
  for (const auto& [parameter, gradient] : gradients) {
    const kernels::Nonfinite bad =
        kernels::launch(gradient.device(), kernels::FindNonfinite{gradient});
    if (bad.count == 0) continue;
    const double value = gradient.flatten().select(0, bad.first).to(DType::float64).item<double>();
    ACCRUE_CHECK(
        false,
        StateError,
        operation,
        "gradients must be finite, got ",
        value,
        " at ",
        indices_of(bad.first, gradient.shape()),
        " of parameter ",
        parameters.name(parameter),
        " ",
        gradient.shape(),
        " (",
        bad.count,
        " such elements); nothing was changed, call zero_grad() to go on without this step");
  }
}

}  // namespace accrue::optim
