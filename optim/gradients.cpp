#include "accrue/optim/gradients.h"

#include "accrue/autograd/leaf.h"
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
    parameters[position].node()->as_leaf()->replace_grad(gradient);
  }
  return gradients;
}

kernels::Nonfinite find_nonfinite(std::span<const Gradient> gradients) {
  kernels::Nonfinite found;
  for_each_device(gradients, [&](Device device, auto tensors, std::size_t first) {
    if (found.count > 0) return;
    found = kernels::launch(device, kernels::FindNonfinite{tensors});
    found.tensor += static_cast<std::int64_t>(first);
  });
  return found;
}

void check_finite(const ParameterList& parameters,
                  std::span<const Gradient> gradients,
                  const char* operation) {
  const kernels::Nonfinite bad = find_nonfinite(gradients);
  if (bad.count == 0) return;
  const auto& [parameter, gradient] = gradients[static_cast<std::size_t>(bad.tensor)];
  const double value = gradient.flatten().select(0, bad.first).to(DType::float64).item<double>();
  ACCRUE_CHECK(false,
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

}  // namespace accrue::optim
