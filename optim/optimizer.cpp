#include "accrue/optim/optimizer.h"

#include "accrue/autograd/leaf.h"
#include "accrue/core/error.h"
#include "accrue/optim/gradients.h"

#include <limits>
#include <unordered_map>

namespace accrue::optim {
namespace {

void check_parameter(const char* operation, const std::string& name, const Variable& parameter) {
  ACCRUE_CHECK(
      parameter.node() && parameter.is_leaf(),
      ValueError,
      operation,
      "parameters must be leaves, got parameter ",
      name,
      parameter.node() ? text(", the result of ", parameter.node()->name()) : " without a gradient",
      "; use Variable::leaf(value)");
  ACCRUE_CHECK(parameter.value().is_contiguous(),
               ValueError,
               operation,
               "parameters must be dense and row-major, got parameter ",
               name,
               " ",
               parameter.shape(),
               " with strides ",
               parameter.value().strides(),
               "; use contiguous()");
}

}  // namespace

void check_option(const char* operation, const char* name, double value) {
  ACCRUE_CHECK(value >= 0 && value <= std::numeric_limits<float>::max(),
               ValueError,
               operation,
               name,
               " must be >= 0 and finite in float32, got ",
               value);
}

Optimizer::Optimizer(const char* name,
                     const std::vector<ParameterList>& groups,
                     std::vector<double> lrs,
                     std::vector<std::string> slots)
    : lrs_(std::move(lrs)) {
  for (const ParameterList& group : groups) {
    parameters_.append(group);
    groups_.resize(parameters_.size(), static_cast<int>(&group - groups.data()));
  }
  ACCRUE_CHECK(parameters_.size() > 0,
               ValueError,
               name,
               "at least one parameter is needed, got none; pass model.parameters()");
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    check_parameter(name, parameters_.name(i), parameters_[i]);
  }
  parameters_.check_distinct(name);
  for (const double lr : lrs_) check_option(name, "lr", lr);
  for (std::string& slot : slots) {
    slots_.push_back({std::move(slot), std::vector<Tensor>(parameters_.size())});
  }
}

void Optimizer::step() {
  std::vector<Gradient> gradients = gradients_of(parameters_);
  check_finite(parameters_, gradients, "step");
  for (Gradient& gradient : gradients) gradient.value = gradient.value.contiguous();
  apply(gradients);
}

void Optimizer::zero_grad() {
  for (const auto& [name, parameter] : parameters_) parameter.node()->as_leaf()->zero_grad();
}

void Optimizer::check_group(const char* operation, int group) const {
  ACCRUE_CHECK(group >= 0 && group < num_groups(),
               IndexError,
               operation,
               "group must lie in [0, ",
               num_groups(),
               "), got ",
               group);
}

double Optimizer::lr(int group) const {
  check_group("lr", group);
  return lrs_[static_cast<std::size_t>(group)];
}

void Optimizer::set_lr(double lr, int group) {
  check_group("set_lr", group);
  check_option("set_lr", "lr", lr);
  lrs_[static_cast<std::size_t>(group)] = lr;
}

OptimizerState Optimizer::state() const {
  OptimizerState state = {{"lr", Tensor::from(lrs_, {num_groups()})}};
  for (const Slot& slot : slots_) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!slot.values[i].defined()) continue;
      state.emplace_back(slot.name + '.' + parameters_.name(i), slot.values[i]);
    }
  }
  return state;
}

void Optimizer::load_state(const OptimizerState& state) {
  std::unordered_map<std::string, const Tensor*> given;
  for (const auto& [name, tensor] : state) given[name] = &tensor;
  std::string faults;
  /// A copy of the entry `name`, undefined when there is none.
  const auto take = [&](const std::string& name, const Shape& shape, DType dtype) -> Tensor {
    const auto entry = given.find(name);
    if (entry == given.end()) return {};
    const Tensor tensor = *entry->second;
    given.erase(entry);
    if (tensor.defined() && tensor.shape() == shape && tensor.dtype() == dtype)
      return tensor.clone();
    faults += text("; ", name, " must be ", shape, " ", dtype, ", got ");
    faults += tensor.defined() ? text(tensor.shape(), " ", tensor.dtype()) : "an undefined tensor";
    return {};
  };
  const Tensor lrs = take("lr", {num_groups()}, DType::float64);
  std::vector<Slot> slots = slots_;
  for (Slot& slot : slots) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const Variable& parameter = parameters_[i];
      slot.values[i] =
          take(slot.name + '.' + parameters_.name(i), parameter.shape(), parameter.dtype());
    }
  }
  for (const auto& [name, tensor] : state) {
    if (given.erase(name) > 0) faults += "; " + name + " is not known";
  }
  if (faults.empty() && !lrs.defined()) faults = "; lr is missing";
  ACCRUE_CHECK(faults.empty(),
               ValueError,
               "load_state",
               "the state must fit the optimizer",
               faults,
               "; nothing was loaded");
  std::vector<double> values = lrs.to_vector<double>();
  for (const double lr : values) check_option("load_state", "lr", lr);
  lrs_ = std::move(values);
  slots_ = std::move(slots);
}

}  // namespace accrue::optim
