#include "accrue/autograd/gradcheck.h"

#include "accrue/autograd/grad_mode.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace accrue {
namespace {

using Function = std::function<Variable(std::span<const Variable>)>;

/// The outputs at inputs whose element `index` of input `which` is moved by `delta`.
std::vector<double> values_at(const Function& function,
                              const std::vector<Variable>& leaves,
                              std::size_t which,
                              std::int64_t index,
                              double delta) {
  const NoGrad no_grad;
  std::vector<Variable> moved = leaves;
  const Device device = leaves[which].device();
  Tensor copy = leaves[which].value().to(Device::cpu()).clone();
  copy.mutable_data<double>()[index] += delta;
  moved[which] = Variable(copy.to(device));
  return function(moved).value().to_vector<double>();
}

std::vector<double> numeric_derivatives(const Function& function,
                                        const std::vector<Variable>& leaves,
                                        std::size_t which,
                                        std::int64_t index,
                                        double step) {
  const double x = leaves[which].value().flatten()[index].item<double>();
  const double h = step * std::max(1.0, std::fabs(x));
  const auto at = [&](double steps) {
    return values_at(function, leaves, which, index, steps * h);
  };
  const std::vector<double> low2 = at(-2), low1 = at(-1), high1 = at(1), high2 = at(2);
  std::vector<double> result(low1.size());
  for (std::size_t j = 0; j < result.size(); ++j) {
    result[j] = (low2[j] - 8 * low1[j] + 8 * high1[j] - high2[j]) / (12 * h);
  }
  return result;
}

/// gradients[j][i]: the gradient of output element j with respect to input i.
std::vector<std::vector<Tensor>> analytic_gradients(const Variable& output,
                                                    const std::vector<Variable>& leaves) {
  std::vector<std::vector<Tensor>> gradients;
  for (std::int64_t j = 0; j < output.numel(); ++j) {
    Tensor one = Tensor::zeros(output.shape(), DType::float64);
    one.mutable_data<double>()[j] = 1;
    gradients.push_back(
        grad(output, leaves, one.to(output.device()), {.retain_graph = true}, true));
  }
  return gradients;
}

/// An output element and an element of an input.
struct Place {
  std::size_t output, input;
  std::int64_t element;
};

void check_close(double analytic, double numeric, Place at, const GradcheckOptions& options) {
  ACCRUE_CHECK(std::fabs(analytic - numeric) <= options.atol + options.rtol * std::fabs(numeric),
               ValueError,
               "gradcheck",
               "gradients must agree, got ",
               analytic,
               " from backward and ",
               numeric,
               " from differences for output element ",
               at.output,
               " and element ",
               at.element,
               " of input ",
               at.input);
}

}  // namespace

std::int64_t gradcheck(const Function& function,
                       std::span<const Tensor> inputs,
                       const GradcheckOptions& options) {
  std::vector<Variable> leaves;
  for (const Tensor& input : inputs) {
    ACCRUE_CHECK(input.dtype() == DType::float64,
                 DTypeError,
                 "gradcheck",
                 "inputs must be float64, got ",
                 input.dtype(),
                 "; convert with to()");
    leaves.push_back(Variable::leaf(input.contiguous()));
  }
  const Variable output = function(leaves);
  if (!output.requires_grad()) return 0;
  const auto gradients = analytic_gradients(output, leaves);
  std::int64_t compared = 0;
  for (std::size_t which = 0; which < leaves.size(); ++which) {
    for (std::int64_t i = 0; i < leaves[which].numel(); ++i) {
      const auto numeric = numeric_derivatives(function, leaves, which, i, options.step);
      for (std::size_t j = 0; j < numeric.size(); ++j) {
        const Tensor& gradient = gradients[j][which];
        const double analytic = gradient.defined() ? gradient.flatten()[i].item<double>() : 0.0;
        check_close(analytic, numeric[j], {j, which, i}, options);
      }
      compared += static_cast<std::int64_t>(numeric.size());
    }
  }
  return compared;
}

}  // namespace accrue
